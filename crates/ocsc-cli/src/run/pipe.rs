//! Frames from standard input: without number and without a second pass.
//!
//! A thread of its own reads and preprocesses frames, one or two ahead, so that Ctrl-C is heard while none arrive. Memory
//! does not grow with their number.

use crate::args::DataArgs;
use crate::console::{self, Console, counted, told};
use crate::data::Masks;
use crate::data::raw::Frames;
use crate::run::model::check_masked;
use anyhow::{Context, Result, anyhow, bail, ensure};
use ocsc::preprocess::Preprocess;
use ocsc::train::Stream;
use ocsc::{Real, Sample};
use std::io::{IsTerminal, Stdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How often a wait for frames looks up for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether the data are frames from standard input.
pub(crate) fn is_wanted(data: &DataArgs) -> Result<bool> {
    let wanted = data.data.iter().any(|path| path.as_os_str() == "-");
    ensure!(wanted || data.raw.is_none(), "--raw is for frames from standard input; expected - as DATA");
    ensure!(!wanted || data.data.len() == 1, "-: standard input cannot be joined with other data");
    Ok(wanted)
}

/// Frames as the library takes them.
pub(crate) struct FrameStream<'a, T> {
    pub(crate) frames: FrameReader<T>,
    pub(crate) console: &'a Console,
    /// The reason why there are no more, in the program's words.
    pub(crate) raised: Option<anyhow::Error>,
}

impl<T: Real> Stream<T> for FrameStream<'_, T> {
    fn take(&mut self, n: usize) -> ocsc::Result<Option<Vec<Sample<T>>>> {
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

pub(crate) fn is_masked(data: &DataArgs) -> bool {
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
pub(crate) struct FrameReader<T> {
    messages: Messages<T>,
    bytes: usize,
    /// Frames so far, and at most.
    taken: usize,
    limit: usize,
    ended: bool,
}

impl<T: Real> FrameReader<T> {
    pub(crate) fn start(data: &DataArgs, preprocess: &Preprocess) -> Result<Self> {
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
        Ok(FrameReader { messages, bytes, taken: 0, limit: data.limit.unwrap_or(usize::MAX), ended: false })
    }

    /// The next `n` frames, or as many as there are. An error if there never was one.
    pub(crate) fn take(&mut self, n: usize, console: &Console) -> Result<Vec<Sample<T>>> {
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
