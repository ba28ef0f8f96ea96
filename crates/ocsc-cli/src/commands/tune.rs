//! `ocsc tune`: which beta, and how many filters of what size, by predicting hidden values.

use crate::args::Tune;
use crate::console::{self, Console, Interrupted, counted};
use crate::data::Source;
use crate::interrupt::UntilInterrupted;
use crate::ranks::Ranks;
use crate::report::chart::{Chart, Series, Style};
use crate::run::begin;
use crate::run::dataset;
use crate::run::model::{Prepared, check_masked, load, preprocessing};
use crate::run::outputs::Outputs;
use crate::run::pipe;
use crate::run::sparsity::{digits, percent};
use anyhow::{Context, Result, bail, ensure};
use ocsc::checkpoint::Saved;
use ocsc::monitor::Monitor;
use ocsc::replace::write_file;
use ocsc::settings::Dtype;
use ocsc::tune::{Filters, PathEnd, Point, Tuned, Tuning, recommend_filters, tune};
use ocsc::{Config, Real};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// `ocsc tune`.
pub(crate) fn run(args: &Tune, console: &Console) -> Result<()> {
    ensure!(!pipe::is_wanted(&args.data)?, "-: expected data that can be read more than once, found standard input");
    let saved = args.saved.as_ref().map(|path| load::<f32>(path, console)).transpose()?;
    let (source, config) = opened(args, saved.as_ref(), console)?;
    let mut files = Outputs::default();
    files.read("one of the data", source.files());
    files.read("the model", &args.saved);
    if let Some(out) = &args.out {
        ensure!(is_picture(out), "--out {}: expected a name that ends in .png or .svg", out.display());
        files.write("--out", out)?;
        ocsc::replace::check_writable(out).context("--out")?;
    }
    console::catch_interrupts();
    let tries = match config.dtype {
        Dtype::F32 => tried::<f32>(args, &source, &config, console),
        Dtype::F64 => tried::<f64>(args, &source, &config, console),
    };
    let tries = tries.map_err(|error| match error.downcast_ref() {
        Some(ocsc::Error::Stopped) => Interrupted("interrupted; nothing was written".to_owned()).into(),
        _ => error,
    })?;
    let chosen = recommend_filters(&tries);
    if let Some(out) = &args.out {
        draw(out, &tries, chosen)?;
    }
    report(args, &tries, chosen, console)
}

/// Opens the data, with the settings to learn and code them with: those of the model, or those of the call.
fn opened(args: &Tune, saved: Option<&Saved<f32>>, console: &Console) -> Result<(Source, Config)> {
    let ranks = &Ranks::alone();
    let (source, config, channels) = match saved {
        Some(saved) => {
            let (source, _) = dataset::for_coding(&args.data, &saved.config, saved.dictionary.shape(), ranks, console)?;
            return Ok((source, saved.config.clone()));
        }
        None => {
            let source = dataset::for_tuning(&args.data, &args.model)?;
            let steps = preprocessing(args.model.preprocess(), &source)?;
            let config = args.model.config(source.rank(), steps, source.is_arrays())?;
            let channels = dataset::channels_of_start(&args.model.init, source.rank())?;
            (source, config, channels)
        }
    };
    check_masked(&config.preprocess, source.is_masked())?;
    Ok((dataset::alike(&source, &config.preprocess, channels, ranks, console)?, config))
}

/// Tries every number and size of filters.
fn tried<T: Real>(args: &Tune, source: &Source, config: &Config, console: &Console) -> Result<Vec<Tuned>> {
    let samples = Prepared::new(source, &config.preprocess);
    let mut tuning = Tuning::default();
    (tuning.hidden, tuning.samples, tuning.relearn) = (args.hide, args.samples, args.relearn);
    tuning.seed = args.model.seed();
    tuning.learned_at = learned_at(args).unwrap_or(tuning.learned_at);
    if !args.ratios.is_empty() {
        tuning.ratios.clone_from(&args.ratios);
        tuning.ratios.sort_by(|a, b| b.total_cmp(a));
    }
    let monitor: Arc<dyn Monitor> = Arc::new(UntilInterrupted);
    let mut tries = Vec::new();
    for (n_filters, size) in combinations(args, config, source.rank())? {
        let config = Config { n_filters, filter_shape: size, ..config.clone() };
        let filters = match &args.saved {
            Some(path) => Filters::Given(load::<T>(path, &Console::new(true))?.dictionary),
            None => Filters::Learned(begin::start(&args.model.init, source.rank(), console)?),
        };
        let name = words(n_filters, &config.filter_shape);
        let mut each = |point: &Point| {
            console.say(format!(
                "{name}  ratio {:<6} error {:.4}  non-zeros {}  {:.1} s",
                point.ratio,
                point.error,
                percent(point.nonzeros_share),
                point.seconds
            ));
        };
        tries.push(tune(&config, filters, &samples, &tuning, &monitor, &mut each)?);
    }
    Ok(tries)
}

/// Returns the numbers and sizes of filters to try.
fn combinations(args: &Tune, config: &Config, rank: usize) -> Result<Vec<(usize, Vec<usize>)>> {
    let is_fixed = args.saved.is_some() || begin::is_file(&args.model.init);
    ensure!(
        !is_fixed || args.try_filters.is_empty() && args.try_size.is_empty(),
        "--try-filters, --try-size: expected filters to be learned, found those of --model or --init"
    );
    let numbers = if args.try_filters.is_empty() { vec![config.n_filters] } else { args.try_filters.clone() };
    let sizes = match args.try_size.is_empty() {
        true => vec![config.filter_shape.clone()],
        false => args.try_size.iter().map(|size| size.axes(rank)).collect::<Result<_>>()?,
    };
    Ok(sizes.iter().flat_map(|size| numbers.iter().map(move |n| (*n, size.clone()))).collect())
}

fn words(n_filters: usize, size: &[usize]) -> String {
    let size: Vec<String> = size.iter().map(usize::to_string).collect();
    format!("{} of {}", counted(n_filters, "filter"), size.join("x"))
}

/// Prints the table and the recommendation.
fn report(args: &Tune, tries: &[Tuned], chosen: usize, console: &Console) -> Result<()> {
    let Some(best) = tries.get(chosen) else { bail!("expected filters to try, found none") };
    let point = best.recommendation();
    let size = best.filter_shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    if args.json {
        let result = json!({
            "ratio": point.ratio, "beta": point.beta, "learned_at": learned_at(args), "relearned": args.relearn, "beta_max": best.beta_max, "n_filters": best.n_filters,
            "filter_shape": best.filter_shape, "error": point.error, "end_of_path": best.end_of_path, "tries": tries,
        });
        return console.result(result.to_string());
    }
    let header = "filters  size      ratio         beta  non-zeros   error  std. error  seconds";
    console.result(header)?;
    for (i, tuned) in tries.iter().enumerate() {
        for (j, point) in tuned.points.iter().enumerate() {
            let mark = if (i, j) == (chosen, tuned.recommended) { "  <- recommended" } else { "" };
            let size = tuned.filter_shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
            console.result(format!(
                "{:>7}  {size:<7} {:>7} {:>12.4e} {:>10} {:>7.4} {:>11.4} {:>8.1}{mark}",
                tuned.n_filters,
                point.ratio,
                point.beta,
                percent(point.nonzeros_share),
                point.error,
                point.standard_error,
                point.seconds
            ))?;
        }
    }
    console.result(format!(
        "\nerror: root mean square of {} hidden values of {}, relative to their standard deviation; std. error: over \
         samples",
        best.hidden,
        format_args!("{} samples or pieces of them", best.samples)
    ))?;
    let more = if tries.len() > 1 { format!(" --filters {} --size {size}", best.n_filters) } else { String::new() };
    let (ratio, beta) = (point.ratio, digits(point.beta));
    // What was measured are codes by filters that were learned at one ratio, unless they were learned anew at each.
    match learned_at(args) {
        None => console.result(format!("recommended: code with --beta {beta}  (ratio {ratio})"))?,
        Some(learned) if !args.relearn && learned != ratio => {
            console.result(format!(
                "recommended: learn with --beta-ratio {learned}{more}, then code with --beta {beta}  (ratio {ratio})"
            ))?;
            console.result(format!(
                "the filters were learned at {learned} and used at all ratios: how good filters learned at {ratio} are was not \
                 measured; --relearn learns them anew at each"
            ))?;
        }
        Some(_) => {
            console.result(format!("recommended: learn and code with --beta-ratio {ratio}{more}  (beta {beta})"))?;
        }
    }
    best.end_of_path.and_then(|end| caveat(end, &best.points)).map_or(Ok(()), |caveat| console.result(caveat))
}

/// Says that the recommendation is no more than the end of the path, what that means, and what may be done.
fn caveat(end: PathEnd, points: &[Point]) -> Option<String> {
    let (first, last) = (points.first()?, points.last()?);
    let little_noise = "Data with hardly any noise are like that, and so are filters that do not suit the data: the smaller beta is, the better hidden values are predicted, and the denser \
                        codes are.";
    Some(match end {
        PathEnd::Smallest => format!(
            "The best beta is the end of the path: the error falls up to ratio {}, the smallest that was tried. {little_noise} Try smaller \
             --ratios, or choose a beta by how sparse codes should be (column non-zeros).",
            last.ratio
        ),
        PathEnd::Dense => format!(
            "The best beta is the end of the path: the error falls for as long as codes are sparse, with at most half as many non-zeros as \
             values. {little_noise} Choose a beta by how sparse codes should be (column non-zeros)."
        ),
        PathEnd::Largest => format!(
            "The best beta is the end of the path: no ratio predicts better, by more than chance, than {}, the largest that was tried. Larger \
             ones may predict as well, with sparser codes: try larger --ratios. An error near 1 says that these filters predict \
             little: try others (--filters, --size, --passes).",
            first.ratio
        ),
        _ => return None,
    })
}

/// The ratio that the filters are learned with; none if a model has them.
fn learned_at(args: &Tune) -> Option<f64> {
    let learned = args.model.run().beta_ratio.unwrap_or(Tuning::default().learned_at);
    args.saved.is_none().then_some(learned)
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png") || ending.eq_ignore_ascii_case("svg"))
}

/// Draws the errors against the ratios.
fn draw(out: &Path, tries: &[Tuned], chosen: usize) -> Result<()> {
    let chart = chart(tries, chosen);
    let bytes = match out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg")) {
        true => chart.to_svg().into_bytes(),
        false => chart.to_picture().png_bytes()?,
    };
    write_file(out, bytes).with_context(|| format!("cannot write {}", out.display()))
}

fn chart(tries: &[Tuned], chosen: usize) -> Chart {
    let series = |tuned: &Tuned| Series {
        name: words(tuned.n_filters, &tuned.filter_shape),
        style: Style::LineBars,
        points: tuned.points.iter().map(|p| (p.ratio, p.error)).collect(),
        band: tuned.points.iter().map(|p| (p.error - p.standard_error, p.error + p.standard_error)).collect(),
    };
    let mut all: Vec<Series> = tries.iter().map(series).collect();
    if let Some(point) = tries.get(chosen).map(Tuned::recommendation) {
        let name = format!("recommended: ratio {}, beta {}", point.ratio, digits(point.beta));
        all.push(Series { name, style: Style::Mark, points: vec![(point.ratio, point.error)], band: Vec::new() });
    }
    Chart {
        title: "Prediction of hidden values".to_owned(),
        x_label: "beta / beta_max".to_owned(),
        y_label: "error of hidden values (std. deviations)".to_owned(),
        log_x: true,
        log_y: false,
        series: all,
    }
}
