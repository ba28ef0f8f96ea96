//! `ocsc show`: the dictionary as a picture.

use crate::args::Show;
use crate::console::{Console, counted};
use crate::report::picture::{dictionary_mosaic, legend, numbered_mosaic};
use crate::run::model;
use crate::run::outputs::Outputs;
use anyhow::{Result, ensure};

pub(crate) fn run(args: &Show, console: &Console) -> Result<()> {
    let is_png = args.out.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"));
    ensure!(is_png, "--out {}: expected a name ending in .png", args.out.display());
    let mut files = Outputs::default();
    files.read("the model", [&args.model]);
    files.write("--out", &args.out)?;
    let saved = model::load::<f64>(&args.model, console)?;
    let picture = match args.numbers {
        true => numbered_mosaic(&saved.dictionary),
        false => dictionary_mosaic(&saved.dictionary),
    };
    picture.save_png(&args.out)?;
    let legend = legend(saved.dictionary.shape()).map_or(String::new(), |legend| format!("; {legend}"));
    let filters = counted(saved.dictionary.n_filters(), "filter");
    let numbers = if args.numbers { "" } else { "; --numbers tells which is which" };
    console.say(format!("{}: {filters} in ascending order of variance{legend}{numbers}", args.out.display()));
    Ok(())
}
