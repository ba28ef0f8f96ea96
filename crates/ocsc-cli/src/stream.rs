//! Learning and coding from standard input: frames without number and without a second pass.
//!
//! A thread of its own reads and preprocesses frames, one or two ahead, so that Ctrl-C is heard while none arrive. Memory
//! does not grow with their number.

use crate::args::{Code, DataArgs, Learn};
use crate::code::{Tally, facts, is_made_by, make_folder};
use crate::console::{self, Console, Interrupted, counted, told};
use crate::data::raw::Frames;
use crate::data::{Masks, Source, split_pick};
use crate::fingerprint;
use crate::learn;
use crate::model::{Prepared, check_masked, preprocessing_of};
use crate::open;
use crate::outputs::Outputs;
use crate::ranks::Ranks;
use crate::watch::{Log, Resumed, Watch};
use anyhow::{Context, Result, anyhow, bail, ensure};
use ocsc::checkpoint::{Attached, Saved};
use ocsc::coder::Coder;
use ocsc::preprocess::Preprocess;
use ocsc::train::{Progress, Schedule, Stream, train_stream};
use ocsc::{Config, Learner, Real, Sample, Samples, checkpoint};
use std::io::{IsTerminal, Stdin};
use std::path::Path;
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
    ensure!(args.model.passes().is_none_or(|passes| passes == 1), "--passes: expected 1, as {once}");
    ensure!(args.model.run().stop_tol.is_none(), "--stop-tol compares passes, but {once}");
    let attached = Attached { data: Some(fingerprint::of_stream(args)), ..Attached::default() };
    let saved = args.resume.as_ref().map(|path| resumed::<T>(path, args, &attached, console)).transpose()?;
    let config = match &saved {
        Some((learner, ..)) => learner.config().clone(),
        None => {
            let steps = preprocessing_of(args.model.preprocess(), true, is_masked(&args.data))?;
            args.model.config(2, steps, false)?
        }
    };
    ensure!(!config.method.is_batch(), "--method {}: expected one that learns online, as {once}", config.method);
    let mut frames = Arriving::<T>::start(&args.data, &config.preprocess)?;
    console::catch_interrupts();
    let first = frames.take(config.batch_size, console)?;
    if first.is_empty() {
        return Err(Interrupted("stdin: interrupted before the first frame; nothing was written".to_owned()).into());
    }
    let (learner, progress, recorded) = match saved {
        Some(saved) => saved,
        None => {
            let all: Vec<usize> = (0..first.len()).collect();
            let learner = learn::started(args, config.clone(), &first, &all, |_| None, console)?;
            (learner, Progress::default(), Attached::default())
        }
    };
    let channels = Some(learner.dictionary().shape().channels);
    let test =
        test.map(|test| open::alike(test, &config.preprocess, channels, &Ranks::alone(), console)).transpose()?;
    let test = test.as_ref();
    if let Some(test) = test {
        learn::check_test(&Ranks::alone(), test, &config, learner.dictionary(), args.data.strict)?;
    }
    let test = test.map(|source| Prepared::new(source, &config.preprocess));
    let resumed = args.resume.as_ref().map(|_| Resumed::new(&progress, &recorded.notes));
    let log = args.log.as_ref().map(|path| Log::open(path, resumed)).transpose()?;
    let bar = console.progress("learning", args.data.limit.map(|limit| progress.samples + limit), progress.samples);
    let out = learn::out(args)?;
    let mut watch = Watch::new(bar, log, Some(learn::checkpoints(args, out, &attached)));
    let schedule = Schedule {
        stop_tol: None,
        time_limit: args.model.run().time_limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()),
        test_every: args.test_every,
        strict: true,
    };
    let mut learner = learner;
    let test = test.as_ref().map(|test| test as &dyn Samples<T>);
    let mut frames = Begun { first: Some(first), frames, console, raised: None };
    let trained = train_stream(learner.as_mut(), 1, &mut frames, test, &schedule, progress, &mut watch);
    let (last, tested, notes) = (watch.last, watch.test.take(), watch.notes());
    drop(watch);
    let outcome = match trained {
        Ok(outcome) => outcome,
        Err(error) => {
            let error = frames.raised.unwrap_or_else(|| error.into());
            let attached = Attached { notes, ..attached };
            return Err(learn::rescued(error, learner.as_ref(), last.or(Some(progress)), out, &attached));
        }
    };
    learn::finish(args, learner.as_ref(), &outcome, tested, &attached, console)
}

/// A learner that goes on from a checkpoint, where, and what was attached to it.
fn resumed<T: Real>(
    path: &Path,
    args: &Learn,
    now: &Attached,
    console: &Console,
) -> Result<(Box<dyn Learner<T>>, Progress, Attached)> {
    let saved = checkpoint::load::<T>(path)?;
    let (learner, progress) = saved.resume()?;
    let (ranks, method) = (Ranks::alone(), learner.config().method);
    let (recorded, now) = (saved.attached.data.as_ref(), now.data.as_ref());
    let progress = fingerprint::go_on(args, &ranks, recorded, now, method, progress, console)?;
    Ok((learner, progress, saved.attached))
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
            let told = ocsc::Error::Source(told(&error));
            self.raised = Some(error);
            told
        })?;
        Ok(if taken.is_empty() && console::interrupted() { None } else { Some(taken) })
    }

    fn name(&self, n: usize) -> String {
        format!("stdin: after {}", counted(n, "sample"))
    }
}

/// `ocsc code MODEL -`: one file per frame, `frame-000000.npz` and so on.
pub(crate) fn code<T: Real>(
    args: &Code,
    config: &Config,
    saved: &Saved<T>,
    coder: &mut dyn Coder<T>,
    console: &Console,
) -> Result<()> {
    let dictionary = &saved.dictionary;
    let mut frames = Arriving::<T>::start(&args.data, &config.preprocess)?;
    make_folder(&args.out)?;
    let bar = console.progress("coding", args.data.limit, 0);
    let wanted = facts(saved, config, is_masked(&args.data));
    let mut tally = Tally::new(args, config, dictionary.rank(), wanted.clone(), bar);
    console::catch_interrupts();
    let mut files = Outputs::default();
    files.read("the model", [&args.model]);
    files.read("the mask", args.data.reading.mask.iter().map(|mask| split_pick(mask).0));
    let monitor = tally.monitor();
    let mut taken = 0;
    loop {
        let mut group = frames.take(TOGETHER, console)?;
        let at_end = group.is_empty();
        let mut numbers = Vec::new();
        for sample in &group {
            dictionary.check_sample_shape(sample.shape()).context("stdin: a frame")?;
            let path = args.out.join(format!("frame-{taken:06}.npz"));
            let is_done = files.find("--out", &path)?.is_some() && args.skip_existing;
            if is_done {
                is_made_by(&wanted, &path)?;
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
        for ((number, sample), coded) in numbers.into_iter().flatten().zip(&group).zip(&coded) {
            tally.add(&format!("frame-{number:06}"), format!("stdin[{number}]"), sample, coded)?;
        }
        if console::interrupted() {
            let done = counted(tally.samples(), "frame");
            return Err(Interrupted(format!("interrupted after {done}; their codes are kept")).into());
        }
        if at_end {
            return tally.report(None, console);
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

/// Reads the next frame.
type Read<T> = Box<dyn FnMut() -> Message<T> + Send>;

/// Where messages come from.
enum Messages<T> {
    Thread(Receiver<Message<T>>),
    /// Where no thread could be started: read when asked for, and Ctrl-C is heard when a frame has come.
    InLine(Read<T>),
}

impl<T> Messages<T> {
    fn next(&mut self) -> Result<Message<T>, RecvTimeoutError> {
        match self {
            Messages::Thread(messages) => messages.recv_timeout(PATIENCE),
            Messages::InLine(read) => Ok(read()),
        }
    }
}

/// Frames as they arrive, read and preprocessed by a thread.
struct Arriving<T> {
    messages: Messages<T>,
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
        let read: Read<T> = Box::new(move || next_message(&mut frames, mask.as_ref(), &preprocess));
        let (sender, messages) = sync_channel(1);
        let (hand_over, reader) = sync_channel(1);
        let started = std::thread::Builder::new().spawn(move || {
            let Ok(mut read): Result<Read<T>, _> = reader.recv() else { return };
            loop {
                let message = read();
                let last = !matches!(message, Message::Frame(_));
                // A closed channel means that enough were taken.
                if sender.send(message).is_err() || last {
                    return;
                }
            }
        });
        let messages = match started {
            Ok(_) => {
                // It is there, and waits.
                let _ = hand_over.send(read);
                Messages::Thread(messages)
            }
            Err(_) => Messages::InLine(read),
        };
        Ok(Arriving { messages, bytes, taken: 0, limit: data.limit.unwrap_or(usize::MAX), ended: false })
    }

    /// The next `n` frames, or as many as there are. An error if there never was one.
    fn take(&mut self, n: usize, console: &Console) -> Result<Vec<Sample<T>>> {
        let mut batch = Vec::new();
        while batch.len() < n && self.taken < self.limit && !self.ended && !console::interrupted() {
            match self.messages.next() {
                Ok(Message::Frame(sample)) => {
                    batch.push(sample);
                    self.taken += 1;
                }
                Ok(Message::End(left_over)) => self.end(left_over, console)?,
                Ok(Message::Failed(error)) => return Err(anyhow!("stdin: frame {}: {}", self.taken, told(&error))),
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
                "stdin: after {} of {bytes} bytes, {left_over} bytes of another were left over and dropped",
                counted(taken, "frame")
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
