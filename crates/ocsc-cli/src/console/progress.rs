//! The progress of a command: a bar on a terminal, plain lines elsewhere.

use crate::interrupt::interrupted;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use ocsc::monitor::{Monitor, Round};
use std::cmp::Ordering;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Without a terminal, progress is printed at most this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// How often a bar is drawn while nothing happens, for its clock.
const TICK: Duration = Duration::from_millis(200);

/// What goes on within a sample or a batch is shown once it has taken so long.
const LONG: Duration = Duration::from_secs(1);

/// At most this many messages are shown beside a progress display.
const MOST_NOTES: usize = 20;

/// One progress display.
pub(crate) struct Progress {
    display: Arc<Display>,
}

/// What the threads that work share.
struct Display {
    bar: Option<ProgressBar>,
    plain: bool,
    rank: Option<usize>,
    what: &'static str,
    total: Option<usize>,
    state: Mutex<State>,
    closed: AtomicBool,
}

struct State {
    done: usize,
    /// How it goes, as of the last finished sample.
    message: String,
    /// What is evaluated meanwhile, and how far.
    testing: Option<(usize, usize)>,
    /// Samples coded since the last one was done: those of a batch.
    coded: usize,
    /// The last word of a coder.
    round: Option<Round>,
    /// When something was done last.
    since: Instant,
    last_line: Option<Instant>,
    /// When the evaluation began, and when a line was printed of it.
    test_began: Instant,
    test_line: Option<Instant>,
    notes: usize,
}

/// Where a display is shown.
pub(super) struct Place {
    pub(super) terminal: bool,
    pub(super) plain: bool,
    pub(super) rank: Option<usize>,
}

impl Progress {
    /// Progress of `total` samples, or of as many as come, of which some are done.
    pub(super) fn new(place: &Place, what: &'static str, total: Option<usize>, done: usize) -> Self {
        let bar = place.terminal.then(|| styled(what, total, done, ProgressDrawTarget::stderr()));
        let state = State {
            done,
            message: String::new(),
            testing: None,
            coded: 0,
            round: None,
            since: Instant::now(),
            last_line: None,
            test_began: Instant::now(),
            test_line: None,
            notes: 0,
        };
        let (plain, rank, state) = (place.plain, place.rank, Mutex::new(state));
        let display = Arc::new(Display { bar, plain, rank, what, total, state, closed: AtomicBool::new(false) });
        if display.bar.is_some() {
            let ticking = display.clone();
            // Without it the clock moves with the samples only.
            let _ = std::thread::Builder::new().spawn(move || ticking.tick());
        }
        Progress { display }
    }

    /// A message beside the progress. Of a long series only the first are shown: a folder may hold thousands of files that
    /// cannot be read.
    pub(crate) fn note(&mut self, message: &str) {
        let display = &self.display;
        let notes = {
            let mut state = display.lock();
            state.notes += 1;
            state.notes
        };
        let message = match notes.cmp(&(MOST_NOTES + 1)) {
            Ordering::Less => message,
            Ordering::Equal => "... and more; the summary counts them",
            Ordering::Greater => return,
        };
        match &display.bar {
            Some(bar) => bar.println(message),
            None if display.plain => {
                let who = display.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
                let _ = writeln!(std::io::stderr(), "{who}{message}");
            }
            None => {}
        }
    }

    /// Counts samples that are done; `message` says how it goes.
    pub(crate) fn advance(&mut self, samples: usize, message: &str) {
        let done = self.display.lock().done;
        self.reach(done + samples, message);
    }

    /// Sets how many samples are done in all.
    pub(crate) fn reach(&mut self, samples: usize, message: &str) {
        let mut state = self.display.lock();
        (state.done, state.message) = (samples, message.to_owned());
        (state.testing, state.coded, state.round, state.since) = (None, 0, None, Instant::now());
        self.display.show(&mut state);
    }

    /// Meanwhile so many samples of a test set are evaluated.
    pub(crate) fn testing(&mut self, done: usize, of: usize) {
        let mut state = self.display.lock();
        (state.testing, state.coded, state.round, state.since) = (Some((done, of)), 0, None, Instant::now());
        if done == 0 {
            (state.test_began, state.test_line) = (Instant::now(), None);
        }
        self.display.show(&mut state);
    }

    /// Shows what goes on within samples and batches, and ends it after Ctrl-C.
    pub(crate) fn monitor(&self) -> Arc<dyn Monitor> {
        self.display.clone()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.display.closed.store(true, SeqCst);
        if let Some(bar) = &self.display.bar {
            bar.finish_and_clear();
        }
    }
}

impl Monitor for Display {
    fn keep_going(&self) -> bool {
        !interrupted()
    }

    fn round(&self, round: &Round) {
        let mut state = self.lock();
        state.round = Some(*round);
        self.show_if_long(&mut state);
    }

    fn coded(&self) {
        let mut state = self.lock();
        state.coded += 1;
        state.round = None;
        self.show_if_long(&mut state);
    }
}

impl Display {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_if_long(&self, state: &mut State) {
        if state.since.elapsed() >= LONG {
            self.show(state);
        }
    }

    fn show(&self, state: &mut State) {
        if let Some(bar) = &self.bar {
            bar.set_message(state.to_string());
            bar.set_position(state.done as u64);
        }
        let is_old = |line: Option<Instant>| line.is_none_or(|last| last.elapsed() >= LINE_EVERY);
        // A short evaluation is not worth a line.
        let is_due = match state.testing {
            Some(_) => state.test_began.elapsed() >= LONG && is_old(state.test_line),
            None => self.total.is_some_and(|total| state.done >= total) || is_old(state.last_line),
        };
        if self.plain && self.rank.is_none() && is_due {
            let line = if state.testing.is_some() { &mut state.test_line } else { &mut state.last_line };
            *line = Some(Instant::now());
            let of = self.total.map_or(String::new(), |total| format!("/{total}"));
            let _ = writeln!(std::io::stderr(), "{} {}{of}  {state}", self.what, state.done);
        }
    }

    /// Moves the clock of a bar.
    fn tick(&self) {
        while !self.closed.load(SeqCst) {
            std::thread::sleep(TICK);
            if let Some(bar) = self.bar.as_ref().filter(|_| !self.closed.load(SeqCst)) {
                bar.tick();
            }
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut gap = if self.message.is_empty() { "" } else { "  " };
        if let Some((done, of)) = self.testing {
            write!(f, "{gap}testing {done}/{of}")?;
            gap = "  ";
        } else if self.coded > 0 {
            write!(f, "{gap}{} of the batch coded", self.coded)?;
            gap = "  ";
        }
        match self.round {
            Some(Round { round, gap: relative, .. }) => write!(f, "{gap}round {round}, gap {:.2} %", 100.0 * relative),
            None => Ok(()),
        }
    }
}

/// A bar of which nobody knows how long it will take before it has moved.
fn styled(what: &'static str, total: Option<usize>, done: usize, target: ProgressDrawTarget) -> ProgressBar {
    let (length, style) = match total {
        Some(total) => (Some(total as u64), "{prefix} {wide_bar:.cyan/dim} {pos}/{len}  {elapsed} left {left}  {msg}"),
        None => (None, "{prefix} {spinner} {pos}  {elapsed}  {msg}"),
    };
    let bar = ProgressBar::with_draw_target(length, target).with_position(done as u64);
    let left = move |state: &ProgressState, out: &mut dyn fmt::Write| {
        let _ = match state.pos() > done as u64 {
            true => write!(out, "{:#}", HumanDuration(state.eta())),
            false => out.write_str("?"),
        };
    };
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.with_key("left", left));
    bar.set_prefix(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;

    /// A terminal that remembers what was written.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, s: &str) -> std::io::Result<()> {
            self.write_str(s)
        }
        fn write_str(&self, s: &str) -> std::io::Result<()> {
            self.0.lock().unwrap().push_str(s);
            Ok(())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_time_left_is_unknown_until_something_is_done() {
        for done in [0, 7] {
            let paper = Paper::default();
            let bar = styled("learning", Some(9), done, ProgressDrawTarget::term_like(Box::new(paper.clone())));
            let drawn = || std::mem::take(&mut *paper.0.lock().unwrap());
            bar.tick();
            let text = drawn();
            assert!(text.contains(&format!("{done}/9")) && text.contains("left ?"), "{text}");
            bar.set_position(done as u64 + 1);
            bar.tick();
            let text = drawn();
            assert!(text.contains(&format!("{}/9", done + 1)) && !text.contains('?'), "{text}");
        }
    }

    #[test]
    fn what_goes_on_within_a_sample_a_batch_or_a_test_is_said() {
        let place = Place { terminal: false, plain: false, rank: None };
        let mut progress = Progress::new(&place, "learning", Some(9), 0);
        let text = |progress: &Progress| progress.display.lock().to_string();
        let monitor = progress.monitor();
        monitor.round(&Round { values: 12_000_000, round: 3, gap: 0.25 });
        assert_eq!(text(&progress), "round 3, gap 25.00 %");
        monitor.coded();
        monitor.coded();
        assert_eq!(text(&progress), "2 of the batch coded");
        progress.reach(2, "objective 0.1");
        assert_eq!(text(&progress), "objective 0.1");
        progress.testing(120, 4000);
        monitor.coded();
        monitor.round(&Round { values: 100, round: 1, gap: 1.0 });
        assert_eq!(text(&progress), "objective 0.1  testing 120/4000  round 1, gap 100.00 %");
        progress.reach(3, "objective 0.2");
        assert_eq!(text(&progress), "objective 0.2");
    }
}
