//! The settings of a run as rows of a table.

use anyhow::Result;
use ocsc::Config;

/// The settings that the method obeys, as rows of a table.
pub(crate) fn obeyed(config: &Config) -> Result<Vec<(String, String)>> {
    let ignored: Vec<String> = ocsc::settings::all()
        .filter(|setting| setting.is_recorded() && !config.method.obeys(setting.part))
        .filter_map(|setting| setting.path())
        .map(|path| path.trim_start_matches('/').replace('/', "."))
        .collect();
    let rows = settings(config)?.into_iter();
    Ok(rows.filter(|(name, _)| !ignored.contains(name)).collect())
}

/// The settings as rows of a table, nested ones with dots.
pub(crate) fn settings(config: &Config) -> Result<Vec<(String, String)>> {
    fn flatten(prefix: &str, value: &serde_json::Value, rows: &mut Vec<(String, String)>) {
        match value {
            serde_json::Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&name, value, rows);
            }),
            serde_json::Value::String(text) => rows.push((prefix.to_owned(), text.clone())),
            serde_json::Value::Null => rows.push((prefix.to_owned(), "not set".to_owned())),
            serde_json::Value::Array(items) if items.is_empty() => rows.push((prefix.to_owned(), "none".to_owned())),
            other => rows.push((prefix.to_owned(), other.to_string())),
        }
    }
    let mut rows = Vec::new();
    flatten("", &serde_json::to_value(config)?, &mut rows);
    let preprocess = &config.preprocess;
    if !preprocess.steps().is_empty() {
        let shown = |(name, _): &&mut (String, String)| name == "preprocess";
        rows.iter_mut().filter(shown).for_each(|(_, text)| *text = format!("{preprocess}: {}", preprocess.words()));
    }
    Ok(rows)
}
