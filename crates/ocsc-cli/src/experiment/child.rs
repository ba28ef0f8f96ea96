//! `ocsc learn` in a process of its own, which hears of interrupts and does not outlive this one.
//!
//! The child leads a process group of its own, so that a terminal's Ctrl-C reaches this process alone, which passes it on; what
//! does not end then is killed, since nothing of an unfinished run is kept. The system kills the child when this process dies.

use super::oom::Kills;
use crate::console::{Console, interrupted};
use crate::memory::Refusal;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often the wait for a child looks up.
const LOOK: Duration = Duration::from_millis(20);
/// How long an interrupted child may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// The exit code of a run that is done, but passed over samples.
const PASSED_OVER: i32 = crate::exit::PASSED_OVER as i32;

/// How a child ended.
#[derive(Debug, PartialEq)]
pub(super) enum Ended {
    Done,
    /// It was refused the memory, of which it said how much it needs, or the system killed it for want of memory.
    OutOfMemory {
        need: Option<usize>,
    },
    Interrupted,
    /// For another reason, with its last words.
    Failed(String),
}

/// Runs the command to its end; what it says is shown. `refusal` is a file for the child to say that there is too little memory.
pub(super) fn run(mut command: Command, refusal: &Path, console: &Console) -> Result<Ended> {
    Refusal::expect_at(refusal, &mut command)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    tie_to_this_process(&mut command);
    let kills = Kills::until_now();
    let mut child = Tied(command.spawn().context("cannot start `ocsc learn`")?);
    let said = child.0.stderr.take().map(lines).transpose().context("cannot listen to `ocsc learn`")?;
    let mut last = String::new();
    let mut hear = |line: String| {
        console.say(format!("  {line}"));
        last = line;
    };
    let mut asked: Option<Instant> = None;
    let status = loop {
        match said.as_ref().map(|said| said.recv_timeout(LOOK)) {
            Some(Ok(line)) => hear(line),
            Some(Err(RecvTimeoutError::Timeout)) => {}
            // It closed its stderr, as it does when it ends.
            Some(Err(RecvTimeoutError::Disconnected)) | None => std::thread::sleep(LOOK),
        }
        if let Some(status) = child.0.try_wait().context("cannot wait for `ocsc learn`")? {
            break status;
        }
        match asked {
            None if interrupted() => {
                child.interrupt();
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => child.0.kill().context("cannot end `ocsc learn`")?,
            _ => {}
        }
    };
    said.into_iter().flatten().for_each(&mut hear);
    Ok(ended(status, Refusal::take(refusal), kills.are_more_now(), interrupted(), last))
}

/// What an exit status means.
fn ended(
    status: ExitStatus,
    refusal: Option<Refusal>,
    killed_for_memory: bool,
    interrupted: bool,
    last: String,
) -> Ended {
    match (status.code(), refusal) {
        (Some(0 | PASSED_OVER), _) => Ended::Done,
        _ if interrupted => Ended::Interrupted,
        (Some(_), Some(refusal)) => Ended::OutOfMemory { need: refusal.need },
        (Some(_), None) => Ended::Failed(last),
        (None, _) if is_kill(status) && killed_for_memory => Ended::OutOfMemory { need: None },
        (None, _) => Ended::Failed(format!("ended by a {status}; its last words: {last}")),
    }
}

#[cfg(unix)]
fn is_kill(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGKILL)
}

#[cfg(not(unix))]
fn is_kill(_: ExitStatus) -> bool {
    false
}

/// The lines of a pipe, read by a thread of its own, so that the wait for them can look up.
fn lines(pipe: impl Read + Send + 'static) -> std::io::Result<Receiver<String>> {
    let (send, receive) = channel();
    std::thread::Builder::new().spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            // Nobody hears after an error.
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    })?;
    Ok(receive)
}

/// A child that is not left behind, whatever happens here.
struct Tied(Child);

impl Tied {
    /// Passes Ctrl-C on.
    #[cfg(unix)]
    #[expect(unsafe_code, reason = "a system call")]
    fn interrupt(&self) {
        if let Ok(group) = libc::pid_t::try_from(self.0.id()) {
            // SAFETY: a system call without pointers. The group is that of a child that was not waited for, so it is no other's.
            unsafe { libc::kill(-group, libc::SIGINT) };
        }
    }

    #[cfg(not(unix))]
    fn interrupt(&self) {}
}

impl Drop for Tied {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has the system kill the child when this thread dies, and keeps signals of the terminal from it. To be called, as the start of
/// the child, from the main thread, which lives as long as the process.
#[allow(unsafe_code, reason = "system calls between fork and exec")]
fn tie_to_this_process(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(target_os = "linux")]
    {
        let parent = std::process::id();
        let tie = move || {
            // SAFETY: system calls without pointers, which are allowed between fork and exec.
            let (tied, now) =
                unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong), libc::getppid()) };
            if tied != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // It may have died before that.
            if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(std::io::ErrorKind::Interrupted.into()) }
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe { std::os::unix::process::CommandExt::pre_exec(command, tie) };
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn only_a_refusal_or_a_kill_with_evidence_is_out_of_memory() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        let signal = ExitStatus::from_raw;
        let end = |status, refused: bool, killed, interrupted| {
            let refusal = refused.then_some(Refusal { need: Some(7) });
            ended(status, refusal, killed, interrupted, "last".to_owned())
        };
        assert_eq!(end(exit(0), false, false, false), Ended::Done);
        assert_eq!(end(exit(0), false, true, true), Ended::Done, "what is done is kept");
        assert_eq!(end(exit(3), false, false, false), Ended::Done, "samples were passed over");
        assert_eq!(end(exit(1), true, false, false), Ended::OutOfMemory { need: Some(7) });
        assert_eq!(end(exit(1), true, true, true), Ended::Interrupted);
        assert_eq!(end(exit(1), false, true, false), Ended::Failed("last".to_owned()), "another was killed");
        assert_eq!(end(exit(130), false, false, true), Ended::Interrupted);
        assert_eq!(end(exit(130), false, false, false), Ended::Failed("last".to_owned()), "someone else's Ctrl-C");
        assert_eq!(end(signal(libc::SIGKILL), false, true, false), Ended::OutOfMemory { need: None });
        assert_eq!(end(signal(libc::SIGKILL), false, true, true), Ended::Interrupted);
        for number in [libc::SIGKILL, libc::SIGTERM, libc::SIGSEGV, libc::SIGABRT, libc::SIGBUS, libc::SIGXFSZ] {
            let killed = number != libc::SIGKILL;
            let Ended::Failed(why) = end(signal(number), false, killed, false) else { panic!("{number}") };
            assert!(why.contains(&format!("signal: {number}")) && why.ends_with("last"), "{why}");
        }
    }

    #[test]
    fn a_child_is_not_left_behind() {
        let mut command = Command::new("sleep");
        command.arg("600");
        tie_to_this_process(&mut command);
        let child = Tied(command.spawn().unwrap());
        let process = std::path::PathBuf::from(format!("/proc/{}", child.0.id()));
        assert!(process.exists());
        drop(child);
        assert!(!process.exists());
    }
}
