//! Learning and coding from standard input: frames without number and without a second pass.
//!
//! A thread of its own reads and preprocesses frames, one or two ahead, so that Ctrl-C is heard while none arrive. Memory
//! does not grow with their number.

use crate::args::{Code, DataArgs, Learn};
use crate::code::{Tally, make_folder};
use crate::console::{self, Console};
use crate::crew::Crew;
use crate::data::raw::Frames;
use crate::data::{Masks, Source};
use crate::learn;
use crate::model::{Prepared, check_masked, preprocessing_of};
use crate::watch::{Log, Watch};
use anyhow::{Context, Result, anyhow, bail, ensure};
use ocsc::coder::Coder;
use ocsc::preprocess::Preprocess;
use ocsc::train::{Progress, Schedule, Stream, train_stream};
use ocsc::{Config, Dictionary, Real, Sample, Samples, checkpoint};
use std::io::{IsTerminal, Stdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Frames that `code` works on at the same time.
const TOGETHER: usize = 8;
/// How often a wait for frames looks up for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether the data are frames from standard input.
pub(crate) fn is_wanted(data: &DataArgs) -> Result<bool> {
    let wanted = data.data.iter().any(|path| path.as_os_str() == "-");
    ensure!(wanted || data.raw.is_none(), "--raw is for frames from standard input; expected - as DATA");
    ensure!(!wanted || data.data.len() == 1, "-: standard input cannot be joined with other data");
    Ok(wanted)
}

/// `ocsc learn -`.
pub(crate) fn learn<T: Real>(args: &Learn, test: Option<&Source>, console: &Console) -> Result<()> {
    let once = "standard input can be read once";
    ensure!(args.passes.is_none_or(|passes| passes == 1), "--passes: expected 1, as {once}");
    ensure!(args.stop_tol.is_none(), "--stop-tol compares passes, but {once}");
    let saved = args.resume.as_ref().map(|path| checkpoint::load::<T>(path)?.resume()).transpose()?;
    let config = match &saved {
        Some((learner, _)) => learner.config().clone(),
        None => {
            let steps = preprocessing_of(&args.model.preprocess, true, is_masked(&args.data))?;
            args.model.config(2, steps, false)?
        }
    };
    ensure!(!config.method.is_batch(), "--method {}: expected one that learns online, as {once}", config.method);
    let mut frames = Arriving::<T>::start(&args.data, &config.preprocess)?;
    console::catch_interrupts()?;
    let first = frames.take(config.batch_size, console)?;
    ensure!(!first.is_empty(), "stdin: interrupted before the first frame; nothing was written");
    let (learner, progress) = match saved {
        Some(saved) => saved,
        None => {
            let all: Vec<usize> = (0..first.len()).collect();
            (learn::started(args, config.clone(), &first, &all, |_| None, console)?, Progress::default())
        }
    };
    if let Some(test) = test {
        learn::check_test(&Crew::alone(), test, &config, learner.dictionary(), args.data.strict)?;
    }
    let test = test.map(|source| Prepared::new(source, &config.preprocess));
    let log = args.log.as_ref().map(|path| Log::open(path, args.resume.as_ref().map(|_| &progress))).transpose()?;
    let bar = console.progress("learning", args.data.limit.map(|limit| progress.samples + limit), progress.samples);
    let out = learn::out(args)?;
    let mut watch = Watch::new(bar, log, Some(learn::checkpoints(args, out)));
    let schedule = Schedule {
        stop_tol: None,
        time_limit: args.time_limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()),
        test_every: args.test_every,
        strict: true,
    };
    let mut learner = learner;
    let test = test.as_ref().map(|test| test as &dyn Samples<T>);
    let mut frames = Begun { first: Some(first), frames, console, raised: None };
    let trained = train_stream(learner.as_mut(), 1, &mut frames, test, &schedule, progress, &mut watch);
    let (last, reseeded) = (watch.last, watch.reseeded);
    drop(watch);
    let outcome = match trained {
        Ok(outcome) => outcome,
        Err(error) => {
            let error = frames.raised.unwrap_or_else(|| error.into());
            return Err(learn::rescued(error, learner.as_ref(), last.or(Some(progress)), out));
        }
    };
    learn::finish(args, learner.as_ref(), &outcome, reseeded, console)
}

/// Frames of which the first were taken already.
struct Begun<'a, T> {
    first: Option<Vec<Sample<T>>>,
    frames: Arriving<T>,
    console: &'a Console,
    /// Why there are no more, in the program's words.
    raised: Option<anyhow::Error>,
}

impl<T: Real> Stream<T> for Begun<'_, T> {
    fn take(&mut self, n: usize) -> ocsc::Result<Option<Vec<Sample<T>>>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let taken = self.frames.take(n, self.console).map_err(|error| {
            let told = ocsc::Error::Source(format!("{error:#}"));
            self.raised = Some(error);
            told
        })?;
        Ok(if taken.is_empty() && console::interrupted() { None } else { Some(taken) })
    }

    fn name(&self, n: usize) -> String {
        format!("stdin: after {n} samples")
    }
}

/// `ocsc code MODEL -`: one file per frame, `frame-000000.npz` and so on.
pub(crate) fn code<T: Real>(
    args: &Code,
    config: &Config,
    dictionary: &Dictionary<T>,
    coder: &mut dyn Coder<T>,
    console: &Console,
) -> Result<()> {
    let mut frames = Arriving::<T>::start(&args.data, &config.preprocess)?;
    make_folder(&args.out)?;
    let bar = console.progress("coding", args.data.limit, 0);
    let mut tally = Tally::new(args, config, dictionary.rank(), bar);
    console::catch_interrupts()?;
    let mut done = 0;
    loop {
        let group = frames.take(TOGETHER, console)?;
        for sample in &group {
            dictionary.check_sample_shape(sample.shape()).context("stdin: a frame")?;
        }
        for coded in coder.code_all(&group).with_context(|| format!("stdin: after {done} frames"))? {
            tally.add(&format!("frame-{done:06}"), &coded)?;
            done += 1;
        }
        ensure!(!console::interrupted(), "interrupted after {done} frames; their codes are kept");
        if group.is_empty() {
            return tally.report(console);
        }
    }
}

fn is_masked(data: &DataArgs) -> bool {
    data.reading.mask.is_some() || data.reading.nan_is_missing
}

/// What the reading thread sends.
enum Message<T> {
    Frame(Sample<T>),
    /// No more; so many bytes of a last frame were left over.
    End(usize),
    Failed(anyhow::Error),
}

/// Frames as they arrive, read and preprocessed by a thread.
struct Arriving<T> {
    messages: Receiver<Message<T>>,
    bytes: usize,
    /// Frames so far, and at most.
    taken: usize,
    limit: usize,
    ended: bool,
}

impl<T: Real> Arriving<T> {
    fn start(data: &DataArgs, preprocess: &Preprocess) -> Result<Self> {
        let example = "e.g. ffmpeg -i film.mp4 -f rawvideo -pix_fmt gray - | ocsc learn - --raw 480x640 --out MODEL";
        let Some(size) = data.raw else { bail!("-: expected the size of the frames, --raw HEIGHTxWIDTH; {example}") };
        ensure!(!std::io::stdin().is_terminal(), "stdin: expected raw frames from another program; {example}");
        check_masked(preprocess, is_masked(data))?;
        let mask = data
            .reading
            .mask
            .as_ref()
            .map(|path| Masks::for_frames(path, &data.reading.options(0), [1, size.height, size.width]));
        let mask = mask.transpose().context("--mask")?;
        let input = std::io::stdin();
        let mut frames = Frames::new(input, size.height, size.width, data.raw_format, data.reading.nan_is_missing);
        let (bytes, preprocess) = (frames.bytes(), preprocess.clone());
        let (sender, messages) = sync_channel(1);
        std::thread::Builder::new().spawn(move || {
            loop {
                let message = next_message(&mut frames, mask.as_ref(), &preprocess);
                let last = !matches!(message, Message::Frame(_));
                // A closed channel means that enough were taken.
                if sender.send(message).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(Arriving { messages, bytes, taken: 0, limit: data.limit.unwrap_or(usize::MAX), ended: false })
    }

    /// The next `n` frames, or as many as there are. An error if there never was one.
    fn take(&mut self, n: usize, console: &Console) -> Result<Vec<Sample<T>>> {
        let mut batch = Vec::new();
        while batch.len() < n && self.taken < self.limit && !self.ended && !console::interrupted() {
            match self.messages.recv_timeout(PATIENCE) {
                Ok(Message::Frame(sample)) => {
                    batch.push(sample);
                    self.taken += 1;
                }
                Ok(Message::End(left_over)) => self.end(left_over, console)?,
                Ok(Message::Failed(error)) => return Err(anyhow!("stdin: frame {}: {error:#}", self.taken)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
            }
        }
        Ok(batch)
    }

    fn end(&mut self, left_over: usize, console: &Console) -> Result<()> {
        self.ended = true;
        let (taken, bytes) = (self.taken, self.bytes);
        ensure!(
            taken > 0,
            "stdin: expected frames of {bytes} bytes as --raw and --raw-format say, found {left_over} bytes"
        );
        if left_over > 0 {
            console.say(format!(
                "stdin: after {taken} frames of {bytes} bytes, {left_over} bytes of another were left over and dropped"
            ));
        }
        Ok(())
    }
}

fn next_message<T: Real>(frames: &mut Frames<Stdin>, mask: Option<&Masks>, preprocess: &Preprocess) -> Message<T> {
    let prepared = |sample: Sample<f64>| -> Result<Sample<T>> {
        let sample = match mask {
            Some(mask) => mask.lay(0, sample)?,
            None => sample,
        };
        Ok(preprocess.apply(sample)?.cast()?)
    };
    match frames.next_frame().and_then(|frame| frame.map(prepared).transpose()) {
        Ok(Some(sample)) => Message::Frame(sample),
        Ok(None) => Message::End(frames.left_over),
        Err(error) => Message::Failed(error),
    }
}
