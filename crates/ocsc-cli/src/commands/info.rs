//! `ocsc info`: what is in a model file.

use crate::args::Info;
use crate::console::{Console, counted};
use crate::run::model;
use anyhow::Result;
use ocsc::Config;

pub(crate) fn run(args: &Info, console: &Console) -> Result<()> {
    let saved = model::load::<f64>(&args.model, console)?;
    let norms = saved.dictionary.norms();
    let largest = norms.iter().copied().fold(0.0, f64::max);
    if args.json {
        let (shape, rank) = (saved.dictionary.shape(), saved.dictionary.rank());
        let result = serde_json::json!({
            "n_filters": saved.dictionary.n_filters(), "channels": shape.channels, "filter_shape": shape.axes(rank),
            "largest_norm": largest, "checkpoint": saved.progress, "config": saved.config, "checksum": saved.checksum,
            "dictionary_checksum": saved.dictionary_checksum, "data": saved.attached.data,
        });
        return console.result(serde_json::to_string_pretty(&result)?);
    }
    let mut rows = vec![("file".to_owned(), args.model.display().to_string())];
    rows.extend(settings(&saved.config)?);
    rows.push(("largest norm".to_owned(), format!("{largest}")));
    let progress = match saved.progress {
        Some(p) => format!(
            "yes: {}, {}, {:.1} s; go on with `ocsc learn DATA --resume`",
            counted(p.samples, "sample"),
            counted(p.pass, "whole pass"),
            p.seconds
        ),
        None => "no".to_owned(),
    };
    rows.push(("checkpoint".to_owned(), progress));
    rows.push(("checksum".to_owned(), saved.checksum.unwrap_or("none".to_owned())));
    console.table(&rows)
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
