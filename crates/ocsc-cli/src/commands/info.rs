//! `ocsc info`: what is in a model file.

use crate::args::Info;
use crate::console::{Console, counted};
use crate::run::model;
use anyhow::Result;
use ocsc::Config;
use ocsc::checkpoint::Saved;
use ocsc::text::extent;

pub(crate) fn run(args: &Info, console: &Console) -> Result<()> {
    let saved = model::load::<f64>(&args.model, console)?;
    let norms = saved.dictionary.norms();
    let largest = norms.iter().copied().fold(0.0, f64::max);
    if args.json {
        let (shape, rank) = (saved.dictionary.shape(), saved.dictionary.rank());
        let result = serde_json::json!({
            "n_filters": saved.dictionary.n_filters(), "channels": shape.channels, "filter_shape": shape.axes(rank),
            "largest_norm": largest, "checkpoint": saved.progress, "config": saved.config, "checksum": saved.checksum,
            "dictionary_checksum": saved.dictionary_checksum, "samples": samples(&saved), "data": saved.attached.data,
        });
        return console.result(serde_json::to_string_pretty(&result)?);
    }
    console.result(format!("{}\n", sentence(&saved)))?;
    let mut rows = vec![("file".to_owned(), args.model.display().to_string())];
    rows.extend(obeyed(&saved.config)?);
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

/// Returns from how many samples a model was learned, if its file says so.
fn samples(saved: &Saved<f64>) -> Option<usize> {
    // Checkpoints from before models said it list their samples.
    let listed = || Some(saved.attached.data.as_ref()?.samples.as_ref()?.count);
    saved.attached.samples.or_else(listed)
}

/// What a model is, in one sentence: "100 gray 11x11 filters learned from 160 samples in 1 pass by ocsc".
pub(crate) fn sentence(saved: &Saved<f64>) -> String {
    let (dictionary, config) = (&saved.dictionary, &saved.config);
    let shape = dictionary.shape();
    let colour = match (shape.channels, dictionary.rank()) {
        (1, 1) => String::new(),
        (1, _) => "gray ".to_owned(),
        (3, 2) => "colour ".to_owned(),
        (n, _) => format!("{n}-channel "),
    };
    let count = if dictionary.n_filters() == 1 { "filter" } else { "filters" };
    let size = extent(&shape.spatial());
    let from = samples(saved).map_or(String::new(), |samples| format!("from {} ", counted(samples, "sample")));
    let learned = match config.passes {
        0 => "not learned".to_owned(),
        passes => format!("learned {from}in {} by {}", counted(passes, "pass"), config.method),
    };
    format!("{} {colour}{size} {count} {learned}", dictionary.n_filters())
}

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
