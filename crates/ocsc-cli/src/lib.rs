//! The program `ocsc`: learn, code, reconstruct, evaluate and show convolutional dictionaries.
//!
//! This file is glue: `args` reads the command line, each file of [`commands`] does the work of one with the help of `run`,
//! `console` talks to the person in front of it. Results go to stdout, messages to stderr; [`mod@exit`] has the exit codes.
//!
//! It is a library for the sake of `ocsc-mpi`, which runs some of the [`commands`] by several processes, a [`Ranks`].

mod args;
pub mod commands;
mod console;
mod data;
mod demo;
pub mod exit;
mod experiment;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod interrupt;
mod live;
mod memory;
mod ranks;
mod report;
mod run;
mod threads;

pub use args::{Code, Common, Evaluate, Learn};
pub use console::Console;
pub use interrupt::{Interrupted, handle_signals};
pub use ranks::Ranks;

use anyhow::Context;
use args::{Args, Command};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    return_large_blocks();
    ignore_file_size_signal();
    let args = Args::parse();
    let console = Console::new(args.common.quiet);
    handle_signals(|why| console.say(why));
    interrupt::say_at_once("interrupted");
    match dispatch(args, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(exit::report(&error, &console)),
    }
}

/// Gives the memory of samples back to the system as soon as they are done with. By default the C library keeps such blocks
/// for the thread that asked for them, and readers and learners take turns at asking and freeing: a long run would hold
/// half as much again.
#[allow(unsafe_code, reason = "a call of the C library")]
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number of the allocator, before there are other threads.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 900_000);
    }
}

/// Makes a file that outgrows `ulimit -f` an error that can be told and cleaned up after, instead of the end of the process.
#[allow(unsafe_code, reason = "a system call")]
pub fn ignore_file_size_signal() {
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

fn dispatch(args: Args, console: &Console) -> anyhow::Result<()> {
    ocsc::simd::check()?;
    args.common.set_threads(console)?;
    let (threads, ranks) = (args.common.threads, &Ranks::alone());
    match args.command {
        Command::Demo(demo) => demo::run(&demo, console),
        Command::Learn(learn) => commands::learn::run(&learn, ranks, console),
        Command::Code(code) => commands::code::run(&code, ranks, console),
        Command::Events(events) => commands::events::run(&events, console),
        Command::Reconstruct(reconstruct) => commands::reconstruct::run(&reconstruct, console),
        Command::Evaluate(evaluate) => commands::evaluate::run(&evaluate, ranks, console),
        Command::Denoise(denoise) => commands::restore::denoise(&denoise, console),
        Command::Inpaint(inpaint) => commands::restore::inpaint(&inpaint, console),
        Command::Deblur(deblur) => commands::restore::deblur(&deblur, console),
        Command::Upscale(upscale) => commands::restore::upscale(&upscale, console),
        Command::Demosaic(demosaic) => commands::restore::demosaic(&demosaic, console),
        Command::Tune(tune) => commands::tune::run(&tune, console),
        Command::Show(show) => commands::show::run(&show, console),
        Command::Info(info) => commands::info::run(&info, console),
        Command::Verify(verify) => commands::verify::run(&verify, console),
        Command::View(view) => commands::view::run(&view, console),
        Command::Compare(compare) => commands::compare::run(&compare, threads, console),
        Command::Reproduce(reproduce) => commands::reproduce::run(&reproduce, threads, console),
        Command::Report(report) => commands::report::run(&report, console),
        Command::Completions { shell } => {
            // Through memory: the generator panics where writing fails.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "ocsc", &mut script);
            console.result(String::from_utf8_lossy(&script).trim_end())
        }
        Command::Man { out } => {
            std::fs::create_dir_all(&out).with_context(|| format!("--out {}", out.display()))?;
            clap_mangen::generate_to(Args::command(), &out).with_context(|| format!("--out {}", out.display()))
        }
    }
}
