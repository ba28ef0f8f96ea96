//! `ocsc info`: what is in a model file.

use crate::args::Info;
use crate::console::{Console, counted};
use crate::run::model;
use crate::run::settings::obeyed;
use anyhow::Result;
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
