//! The program `ocsc`: learn, code, reconstruct, evaluate and show convolutional dictionaries.
//!
//! This file is glue: `args` reads the command line, one file per command does the work with the library's help,
//! `console` talks to the person in front of it. Results go to stdout, messages to stderr; [`mod@exit`] has the exit codes.
//!
//! It is a library for the sake of `ocsc-mpi`, which runs some of the [`commands`] by several processes, a [`Ranks`].

mod args;
mod belonging;
mod chart;
mod code;
mod compare;
mod console;
mod data;
mod demo;
mod evaluate;
pub mod exit;
mod experiment;
mod fingerprint;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod interrupt;
mod learn;
mod leaves;
mod lock;
mod memory;
mod model;
mod open;
mod original;
mod outputs;
mod pairing;
mod picture;
mod ranks;
mod record;
mod report;
mod reproduce;
mod show;
mod stream;
mod student;
mod summary;
mod threads;
mod triplet;
mod verify;
mod watch;

pub use args::{Code, Common, Evaluate, Learn};
pub use console::Console;
pub use interrupt::{Interrupted, handle_signals};
pub use ranks::Ranks;

/// The commands that several processes can run.
pub mod commands {
    pub use crate::code::run as code;
    pub use crate::evaluate::run as evaluate;
    pub use crate::learn::run as learn;
}

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    return_large_blocks();
    ignore_file_size_signal();
    let args = Args::parse();
    let console = Console::new(args.common.quiet);
    handle_signals(&console);
    match run(args, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(exit::report(&error, &console)),
    }
}

/// Gives the memory of samples back to the system as soon as they are done with. By default the C library keeps such blocks
/// for the thread that asked for them, and readers and learners take turns at asking and freeing: a long run would hold
/// half as much again.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number of the allocator, before there are other threads.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 900_000);
    }
}

/// Makes a file that outgrows `ulimit -f` an error that can be told and cleaned up after, instead of the end of the process.
pub fn ignore_file_size_signal() {
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

fn run(args: Args, console: &Console) -> anyhow::Result<()> {
    args.common.set_threads(console)?;
    let (threads, ranks) = (args.common.threads, &Ranks::alone());
    match args.command {
        Command::Demo(demo) => demo::run(&demo, console),
        Command::Learn(learn) => learn::run(&learn, ranks, console),
        Command::Code(code) => code::run(&code, ranks, console),
        Command::Reconstruct(reconstruct) => code::reconstruct(&reconstruct, console),
        Command::Evaluate(evaluate) => evaluate::run(&evaluate, ranks, console),
        Command::Show(show) => show::show(&show, console),
        Command::Info(info) => show::info(&info, console),
        Command::Verify(verify) => verify::run(&verify, console),
        Command::Compare(compare) => compare::run(&compare, threads, console),
        Command::Reproduce(reproduce) => reproduce::run(&reproduce, threads, console),
        Command::Report(report) => summary::run(&report, console),
        Command::Completions { shell } => {
            // Through memory: the generator panics where writing fails.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "ocsc", &mut script);
            console.result(String::from_utf8_lossy(&script).trim_end())
        }
    }
}
