//! `ocsc code` and `ocsc reconstruct`: samples to sparse codes and back.

mod stream;

use crate::args::Code;
use crate::console::{self, Console, Interrupted, counted, share, told};
use crate::data::{Cut, Facts, Source, codes, problem, split_pick};
use crate::exit::check_passed_over;
use crate::ranks::{Ranks, Sizes};
use crate::run::dataset;
use crate::run::folder::{make_folder, say_existing};
use crate::run::model::{self, Prepared, check_masked, precision_advice};
use crate::run::outputs::{Outputs, is_same};
use crate::run::pipe;
use crate::run::sparsity::{self, needs_beta_max};
use anyhow::{Context, Result, bail, ensure};
use ocsc::beta::BetaMax;
use ocsc::checkpoint::Saved;
use ocsc::coder::{Coded, Status};
use ocsc::comm::{Comm, Shard, all_gather, broadcast};
use ocsc::learner::coder;
use ocsc::monitor::Monitor;
use ocsc::settings::Dtype;
use ocsc::train::code_each;
use ocsc::{Config, Real, Sample, Samples, Shape, Sparsity, replace};
use std::path::Path;
use std::sync::Arc;

/// Codes are this close to optimal unless the call says otherwise.
pub(crate) const DEFAULT_TOL: f64 = 0.01;

/// `ocsc code`.
pub fn run(args: &Code, ranks: &Ranks, console: &Console) -> Result<()> {
    let saved = ranks.load::<f32>(&args.model)?;
    model::say_unsealed(&saved, &args.model, console);
    match args.coding.settings.apply(&saved.config, DEFAULT_TOL)?.dtype {
        Dtype::F32 => code::<f32>(args, ranks, console),
        Dtype::F64 => code::<f64>(args, ranks, console),
    }
}

fn code<T: Real>(args: &Code, ranks: &Ranks, console: &Console) -> Result<()> {
    let saved = ranks.load::<T>(&args.model)?;
    let config = args.coding.settings.apply(&saved.config, DEFAULT_TOL)?;
    if pipe::is_wanted(&args.data)? {
        ensure!(!ranks.is_many(), "-: expected data that all ranks can read, found standard input");
        return stream::code(args, config, &saved, console);
    }
    let (source, sizes) = dataset::for_coding(&args.data, &config, saved.dictionary.shape(), ranks, console)?;
    check_masked(&config.preprocess, source.is_masked())?;
    let all = source.len();
    let samples = Prepared::new(&source, &config.preprocess).sized(&sizes);
    let config =
        sparsity::with_beta(&args.coding.settings, config.clone(), &saved.dictionary, &samples, ranks, console)?;
    let mut coder = coder(&config, &saved.dictionary, config.tol)?;
    let facts = facts(&saved, &config, source.is_masked());
    let rank = config.preprocess.code_rank(saved.dictionary.rank());
    let wanted = Wanted { facts: &facts, config: &config, filters: saved.dictionary.shape(), rank };
    let (source, sizes) = uncoded(args, ranks, source, sizes, &wanted, console)?;
    if source.len() == 0 {
        let codes = if all == 1 { "the code is".to_owned() } else { format!("all {all} codes are") };
        return console.result(format!("{codes} in {} already", args.out.display()));
    }
    let samples = Prepared::new(&source, &config.preprocess).sized(&sizes);
    let part = Shard::<T>::of(ranks.comm(), &samples);
    make_folder(&args.out)?;
    let bar = console.progress("coding", part.len(), 0);
    let mut tally = Tally::new(args, &config, rank, facts, bar);
    console::catch_interrupts();
    let monitor = tally.monitor();
    let coded = code_each(coder.as_mut(), &saved.dictionary, &part, &*monitor, |i, item| -> Result<()> {
        match item {
            Ok(item) => {
                let number = part.number(i);
                // The middle of a window is no window.
                let window = if args.data.reading.crop.is_none() { source.recording(number) } else { None };
                let window = window.map(|(recording, start, _)| (recording, start));
                let cut = source.cut(number)?;
                tally.add(&source.file_stem(number), source.name(number), cut, window, item.sample, &item.coded)
            }
            Err(error) if args.data.strict => bail!(error),
            Err(error) => {
                tally.skip(error.to_string());
                Ok(())
            }
        }
    });
    match coded {
        // Told to the others with the rest.
        Err(error) if matches!(error.downcast_ref(), Some(ocsc::Error::Stopped)) => tally.interrupted = 1,
        coded => coded?,
    }
    tally.all_gather(ranks.comm())?;
    let beta_max = || BetaMax::of_filters(&config, &saved.dictionary, &samples, false).ok();
    let beta_max = if ranks.is_first() && needs_beta_max(&tally.sparsity) { beta_max() } else { None };
    tally.report(Some(source.len()), beta_max, console)
}

/// What the codes of a call must be made with and of, so that those that are there already can stay.
struct Wanted<'a> {
    facts: &'a Facts,
    config: &'a Config,
    filters: Shape,
    /// The spatial axes of codes.
    rank: usize,
}

impl Wanted<'_> {
    /// What is known of the code of sample `index` before the sample is read: of damaged files less.
    fn of(&self, source: &Source, sizes: &Sizes, index: usize) -> Facts {
        let cut = source.cut(index).ok();
        let samples = Prepared::new(source, &self.config.preprocess).sized(sizes);
        let shape = Samples::<f64>::spatial(&samples, index).map(|[depth, height, width]| {
            let shape = Shape { depth, height, width, ..self.filters };
            [vec![shape.channels], shape.axes(self.rank)].concat()
        });
        Facts {
            source: Some(source.name(index)),
            rate: cut.as_ref().and_then(|cut| cut.rate).map(f64::from),
            place: cut.map(|cut| cut.start),
            sample_shape: shape,
            ..self.facts.clone()
        }
    }
}

/// Checks that no code would be written over what the call reads, nor taken for what the call would make, and returns the samples
/// that are to be coded.
fn uncoded(
    args: &Code,
    ranks: &Ranks,
    source: Source,
    sizes: Sizes,
    wanted: &Wanted<'_>,
    console: &Console,
) -> Result<(Source, Sizes)> {
    // One process looks, before any writes: others would see what it has written meanwhile.
    let look = || -> Result<Vec<u8>> {
        let mut files = Outputs::default();
        files.read("the model", [&args.model]);
        files.read("one of the data", source.files());
        let (mut is_there, mut unknown) = (Vec::with_capacity(source.len()), 0);
        for i in 0..source.len() {
            let path = args.out.join(format!("{}.npz", source.file_stem(i)));
            let there = files.write("--out", &path)?;
            if there && args.skip_existing {
                unknown += usize::from(!is_made_by(&wanted.of(&source, &sizes, i), &path)?);
            }
            is_there.push(u8::from(there));
        }
        if unknown > 0 {
            console.say(format!(
                "{} not say which model made it (written before codes did, or elsewhere): taken as it is",
                share(unknown, source.len(), "code", ["does", "do"])
            ));
        }
        Ok(is_there)
    };
    let looked = if ranks.is_first() { look() } else { Ok(Vec::new()) };
    let is_there = broadcast(ranks.comm(), looked.map_err(|e| ocsc::Error::Source(told(&e))))?;
    replace::remove_leftovers_in(&args.out);
    let n_there = is_there.iter().filter(|is_there| **is_there == 1).count();
    say_existing("code", n_there, source.len(), &args.out, args.skip_existing, console);
    if n_there == 0 || !args.skip_existing {
        return Ok((source, sizes));
    }
    let missing: Vec<usize> = (0..source.len()).filter(|i| is_there[*i] == 0).collect();
    Ok((source.only(&missing), missing.iter().map(|i| sizes[*i]).collect()))
}

/// Refuses a code that is there already and was made otherwise, or of another sample, than the call would make it. Returns whether
/// its file says which model made it.
pub(crate) fn is_made_by(wanted: &Facts, path: &Path) -> Result<bool> {
    let mut found = codes::read_facts(path).context("--skip-existing")?;
    if let (Some(wanted), Some(name)) = (&wanted.source, &found.source)
        && is_same_sample(wanted, name)
    {
        found.source = Some(wanted.clone());
    }
    if let Some(difference) = found.difference(wanted) {
        bail!(
            "--skip-existing: {}: {difference}; code all anew without --skip-existing, or name another --out",
            path.display()
        );
    }
    Ok(found.model.is_some())
}

/// Whether two names mean one sample: of one file, whatever its path, the same array and number.
fn is_same_sample(a: &str, b: &str) -> bool {
    let parts = |name: &str| {
        let numbered = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
        let (path, number) = numbered.map_or((name, None), |(path, number)| (path, Some(number.to_owned())));
        let (file, array) = split_pick(Path::new(path));
        (file.to_owned(), array.map(str::to_owned), number)
    };
    let ((a, array_a, number_a), (b, array_b, number_b)) = (parts(a), parts(b));
    array_a == array_b && number_a == number_b && is_same(&a, &b)
}

/// What all codes of a call are made with.
pub(crate) fn facts<T: Real>(saved: &Saved<T>, config: &Config, masked: bool) -> Facts {
    Facts {
        // A budget finds a beta for every sample.
        beta: config.active_set.budget().is_none().then_some(config.beta),
        model: Some(saved.dictionary_checksum.clone()),
        preprocess: Some(config.preprocess.to_string()),
        boundary: Some(config.boundary.to_string()),
        problem: problem(config),
        masked: Some(masked),
        ..Facts::default()
    }
}

/// Writes codes, and sums up what is reported of them.
pub(crate) struct Tally<'a> {
    args: &'a Code,
    config: &'a Config,
    rank: usize,
    facts: Facts,
    bar: console::Progress,
    samples: usize,
    objective: f64,
    gap: f64,
    sparsity: Sparsity,
    unconverged: usize,
    outliers: usize,
    /// How many processes were interrupted.
    interrupted: usize,
    /// The reasons why samples were left out.
    skipped: Vec<String>,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(args: &'a Code, config: &'a Config, rank: usize, facts: Facts, bar: console::Progress) -> Self {
        let (samples, objective, gap, sparsity) = (0, 0.0, 0.0, Sparsity::default());
        let (unconverged, outliers, interrupted, skipped) = (0, 0, 0, Vec::new());
        Tally {
            args,
            config,
            rank,
            facts,
            bar,
            samples,
            objective,
            gap,
            sparsity,
            unconverged,
            outliers,
            interrupted,
            skipped,
        }
    }

    /// Writes the code of the sample called `source`, under the name `stem`; of a recording, with where the window begins.
    pub(crate) fn add<T: Real>(
        &mut self,
        stem: &str,
        source: String,
        cut: Cut,
        window: Option<(String, usize)>,
        sample: Sample<T>,
        coded: &Coded<T>,
    ) -> Result<()> {
        let (shape, observed) = (sample.shape(), sample.n_observed());
        let (recording, start) = window.unzip();
        let facts = Facts {
            recording,
            start: start.map(|start| start as f64),
            rate: cut.rate.map(f64::from),
            energy: Some(sample.energy()),
            whole: Some(cut.name),
            place: Some(cut.start),
            order: Some(cut.whole),
            objective: Some(coded.total()),
            gap: Some(coded.relative_gap()),
            beta: Some(coded.beta),
            sample_shape: Some([vec![shape.channels], shape.axes(self.rank)].concat()),
            source: Some(source),
            ..self.facts.clone()
        };
        // A large one takes as much memory as writing its code.
        drop(sample);
        let mixing = coded.filters.as_ref().map(|own| &own.mixing);
        codes::write_code(&self.args.out.join(format!("{stem}.npz")), &coded.code, mixing, self.rank, &facts)?;
        self.samples += 1;
        self.objective += coded.total();
        self.gap = self.gap.max(coded.relative_gap());
        self.sparsity.add(coded.code.nonzeros(), observed);
        self.unconverged += usize::from(coded.status != Status::Converged);
        self.outliers += coded.outliers;
        self.bar.advance(1, &how_it_goes(observed, coded));
        Ok(())
    }

    /// Returns how many codes were written.
    pub(crate) fn samples(&self) -> usize {
        self.samples
    }

    /// Looks into the coding.
    pub(crate) fn monitor(&self) -> Arc<dyn Monitor> {
        self.bar.monitor()
    }

    /// A sample cannot be coded.
    fn skip(&mut self, why: String) {
        self.bar.note(&format!("skipped: {why}"));
        self.bar.advance(1, "");
        self.skipped.push(why);
    }

    /// Adds what the others did.
    fn all_gather(&mut self, comm: &dyn Comm) -> Result<()> {
        let Sparsity { empty, nonzeros, values, .. } = self.sparsity;
        let counts = [self.samples, nonzeros, self.unconverged, self.outliers, self.interrupted, empty, values];
        let numbers = [&counts.map(|n| n as f64)[..], &[self.objective, self.gap]].concat();
        let numbers: Vec<u8> = numbers.into_iter().flat_map(f64::to_le_bytes).collect();
        let all = all_gather(comm, &[numbers, serde_json::to_vec(&self.skipped)?].concat());
        (self.samples, self.sparsity, self.unconverged) = (0, Sparsity::default(), 0);
        (self.outliers, self.interrupted) = (0, 0);
        (self.objective, self.gap) = (0.0, 0.0);
        self.skipped.clear();
        for bytes in all {
            let (numbers, skipped) = bytes.split_first_chunk::<72>().context("a message of another rank was cut")?;
            let mut numbers = numbers.as_chunks().0.iter().map(|n| f64::from_le_bytes(*n));
            let mut next = || numbers.next().unwrap_or_default();
            self.samples += next() as usize;
            self.sparsity.nonzeros += next() as usize;
            self.unconverged += next() as usize;
            self.outliers += next() as usize;
            self.interrupted += next() as usize;
            self.sparsity.empty += next() as usize;
            self.sparsity.values += next() as usize;
            self.objective += next();
            self.gap = self.gap.max(next());
            self.skipped.extend(serde_json::from_slice::<Vec<String>>(skipped)?);
        }
        self.sparsity.codes = self.samples;
        Ok(())
    }

    /// Says what was done, of `total` samples if that is known; `beta_max` is theirs, where the codes are warned of and it is known.
    pub(crate) fn report(self, total: Option<usize>, beta_max: Option<BetaMax>, console: &Console) -> Result<()> {
        let Tally { args, config, bar, samples, gap, sparsity, unconverged, outliers, skipped, .. } = self;
        drop(bar);
        if self.interrupted > 0 {
            let (done, of) = (counted(samples, "sample"), total.map_or(String::new(), |n| format!(" of {n}")));
            return Err(Interrupted(format!("interrupted after {done}{of}; their codes are kept")).into());
        }
        if let (0, Some(first)) = (samples, skipped.first()) {
            bail!("none of {} could be coded; the first: {first}", counted(skipped.len(), "sample"));
        }
        if unconverged > 0 {
            let advice = precision_advice(config.dtype, "Raise --max-iters or --time-limit");
            console.say(format!(
                "{} not reach the tolerance {}; the files hold the gap that was reached. {advice}",
                share(unconverged, samples, "code", ["did", "did"]),
                config.tol
            ));
        }
        sparsity::warn(&sparsity, config.beta, || beta_max, console);
        let (objective, nonzeros) = (self.objective / samples as f64, sparsity.nonzeros as f64 / samples as f64);
        if args.coding.json {
            let result = serde_json::json!({
                "samples": samples, "objective": objective, "gap": gap, "nonzeros": nonzeros,
                "nonzeros_share": sparsity.share(), "empty": sparsity.empty, "beta": config.beta, "outliers": outliers,
                "skipped": skipped.len(),
            });
            console.result(result.to_string())?;
            return check_passed_over(skipped.len(), "sample", args.data.skip_bad);
        }
        let skips =
            if skipped.is_empty() { String::new() } else { format!(", {} skipped", counted(skipped.len(), "sample")) };
        let mut rows = vec![
            ("codes".to_owned(), format!("{samples} in {}{skips}", args.out.display())),
            ("objective".to_owned(), format!("{objective:.3}")),
            ("worst gap".to_owned(), format!("{:.3} %", 100.0 * gap)),
            ("non-zeros".to_owned(), sparsity::nonzeros(nonzeros, sparsity.share())),
        ];
        if outliers > 0 {
            let per_sample = outliers as f64 / samples as f64;
            rows.push(("outliers".to_owned(), format!("{per_sample:.1} values per sample count less than the others")));
        }
        console.table(&rows)?;
        check_passed_over(skipped.len(), "sample", args.data.skip_bad)
    }
}

/// The objective of a code per value, as that of a sample depends on its size, and its gap.
pub(crate) fn how_it_goes<T: Real>(observed: usize, coded: &Coded<T>) -> String {
    let per_value = coded.total() / observed.max(1) as f64;
    format!("objective {per_value:.4} per value  gap {:.2} %", 100.0 * coded.relative_gap())
}
