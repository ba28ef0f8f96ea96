//! `ocsc code MODEL -`: coding frames of standard input.

use super::{Tally, facts, is_made_by};
use crate::args::Code;
use crate::console::{self, Console, Interrupted, counted};
use crate::data::{Cut, Facts, split_pick};
use crate::ranks::Ranks;
use crate::run::folder::make_folder;
use crate::run::outputs::Outputs;
use crate::run::pipe::{FrameReader, is_masked};
use crate::run::sparsity;
use anyhow::{Context, Result};
use ocsc::checkpoint::Saved;
use ocsc::learner::coder;
use ocsc::{Config, Real};

/// Frames that are coded at the same time.
const TOGETHER: usize = 8;

/// `ocsc code MODEL -`: one file per frame, `frame-000000.npz` and so on.
pub(crate) fn code<T: Real>(args: &Code, config: Config, saved: &Saved<T>, console: &Console) -> Result<()> {
    let dictionary = &saved.dictionary;
    let mut frames = FrameReader::<T>::start(&args.data, &config.preprocess)?;
    make_folder(&args.out)?;
    let bar = console.progress("coding", args.data.limit, 0);
    console::catch_interrupts();
    // Of a stream, a fraction of beta is one of what its first frames allow.
    let mut first = Some(frames.take(TOGETHER, console)?);
    let config = match first.as_ref().filter(|first| !first.is_empty()) {
        Some(first) => sparsity::with_beta(&args.coding.settings, config, dictionary, first, &Ranks::alone(), console)?,
        None => config,
    };
    let mut coder = coder(&config, dictionary, config.tol)?;
    let wanted = facts(saved, &config, is_masked(&args.data));
    let rank = config.preprocess.code_rank(dictionary.rank());
    let mut tally = Tally::new(args, &config, rank, wanted.clone(), bar);
    let mut files = Outputs::default();
    files.read("the model", [&args.model]);
    files.read("the mask", args.data.reading.mask.iter().map(|mask| split_pick(mask).0));
    let monitor = tally.monitor();
    let mut taken = 0;
    loop {
        let mut group = first.take().map_or_else(|| frames.take(TOGETHER, console), Ok)?;
        let at_end = group.is_empty();
        let mut numbers = Vec::new();
        for sample in &group {
            dictionary.check_sample_shape(sample.shape()).context("stdin: a frame")?;
            let path = args.out.join(format!("frame-{taken:06}.npz"));
            let is_done = files.find("--out", &path)?.is_some() && args.skip_existing;
            if is_done {
                let (source, shape) = (format!("stdin[{taken}]"), sample.shape());
                let shape = [vec![shape.channels], shape.axes(rank)].concat();
                let of_frame = Facts { source: Some(source), sample_shape: Some(shape), ..wanted.clone() };
                is_made_by(&of_frame, &path)?;
            }
            numbers.push((!is_done).then_some(taken));
            taken += 1;
        }
        let mut wanted = numbers.iter();
        group.retain(|_| wanted.next().is_some_and(Option::is_some));
        let coded = match coder.code_all(&group, &*monitor) {
            Err(ocsc::Error::Stopped) => Vec::new(),
            coded => coded.with_context(|| format!("stdin: before frame {taken}"))?,
        };
        for ((number, sample), coded) in numbers.into_iter().flatten().zip(group).zip(&coded) {
            let name = format!("stdin[{number}]");
            let cut = Cut { whole: number, name: name.clone(), start: [0; 3], rate: None };
            tally.add(&format!("frame-{number:06}"), name, cut, None, sample, coded)?;
        }
        if console::interrupted() {
            let done = counted(tally.samples(), "frame");
            return Err(Interrupted(format!("interrupted after {done}; their codes are kept")).into());
        }
        if at_end {
            return tally.report(None, None, console);
        }
    }
}
