//! The program `ocsc-mpi`: `ocsc learn`, `evaluate` and `code` by many processes, over MPI.
//!
//! Commands and options are those of `ocsc`; the library's [`ocsc::comm`] says how work is divided, and [`comm`] is its
//! network. Rank 0 does what is done once: it talks, reads and writes models, and writes the log. Its exit code is the program's.
//!
//! **When a process fails**, the job ends. An error that all processes know of (a damaged file with `--strict`, Ctrl-C) ends
//! it in order: rank 0 saves a checkpoint and says which rank had which reason. Any other one is told by the process that has
//! it, which then calls `MPI_Abort`; and when a process is killed, `mpirun` says so and ends the others. Checkpoints are
//! replaced as a whole, so the last one can always be resumed, by any number of processes.

mod comm;

use anyhow::{Context, Error, Result};
use clap::{Args, Parser, Subcommand};
use comm::MpiComm;
use mpi::Threading;
use ocsc::comm::Comm;
use ocsc_cli::{Code, Common, Console, Evaluate, Interrupted, Learn, Ranks, commands, exit};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long other ranks wait before they tell of an error: where all fail alike, rank 0 tells it, and ends them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Online convolutional sparse coding on many machines: the commands and options of `ocsc`, each run by all processes that
/// mpirun starts.
#[derive(Parser)]
#[command(
    name = "ocsc-mpi",
    version,
    after_help = "Examples:\n  mpirun -n 64 ocsc-mpi learn /data/photos --batch 64 --out model.safetensors\n  mpirun -n 64 ocsc-mpi evaluate model.safetensors /data/test\n\nAll processes must see the same data under the same paths. Threads are per process: with one process for each core, as\nabove, each computes with one.\n\nExit codes: 0 done, 1 failed, 2 bad usage, 3 done, but samples were passed over (0 with --skip-bad),\n130 interrupted"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand)]
enum Command {
    /// Learn a dictionary: every batch is divided among the processes, by pixels
    #[command(
        after_help = "Examples:\n  mpirun -n 64 ocsc-mpi learn /data/photos --batch 64 --out model.safetensors\n  mpirun -n 16 ocsc-mpi learn /data/photos --batch 64 --resume model.safetensors\n\nThe dictionary depends on --batch and not on the number of processes, which should not be larger: the others would have\nnothing to do. docs/scale.md says how large a batch pays."
    )]
    Learn(Box<LearnTogether>),
    /// Objective, duality gap, PSNR and non-zeros on a set of samples, divided among the processes
    #[command(after_help = "Example:\n  mpirun -n 64 ocsc-mpi evaluate model.safetensors /data/test --json")]
    Evaluate(Evaluate),
    /// Code new data, divided among the processes: one .npz per sample, each written by the process that coded it
    #[command(after_help = "Example:\n  mpirun -n 64 ocsc-mpi code model.safetensors /data/photos --out /data/codes")]
    Code(Code),
}

#[derive(Args)]
struct LearnTogether {
    #[command(flatten)]
    learn: Learn,
    /// The dictionary of `ocsc learn`, bit for bit. Without this option, too, it is the same whatever the number of processes,
    /// but summed in another way than by `ocsc learn`. Costs traffic: see docs/scale.md
    #[arg(long)]
    reproducible: bool,
}

fn main() -> ExitCode {
    ocsc_cli::return_large_blocks();
    ocsc_cli::ignore_file_size_signal();
    // Before MPI: help and usage errors need no team, and `ocsc-mpi --help` no mpirun.
    let program = match Program::try_parse() {
        Ok(program) => program,
        // Every process has the same; one tells.
        Err(error)
            if ["OMPI_COMM_WORLD_RANK", "PMI_RANK"]
                .iter()
                .any(|name| std::env::var_os(name).is_some_and(|rank| rank != "0")) =>
        {
            return ExitCode::from(error.exit_code() as u8);
        }
        Err(error) => error.exit(),
    };
    let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized) else {
        Console::new(false).error(&Error::msg("MPI could not be initialised; expected to be started by mpirun"));
        return ExitCode::FAILURE;
    };
    let comm = Arc::new(MpiComm::new(&universe));
    let console = match comm.rank() {
        0 => Console::new(program.common.quiet),
        rank => Console::of_rank(rank, program.common.quiet),
    };
    ocsc_cli::handle_signals(|why| console.say(why));
    let done = match threading >= Threading::Serialized {
        true => run(&program, &comm, &console),
        false => Err(Error::msg(format!("expected an MPI library for programs with threads, found {threading:?}"))),
    };
    let code = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_known_to_all(&error) => {
            if comm.rank() == 0 {
                ExitCode::from(exit::report(&error, &console))
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            let (rank, size) = (comm.rank(), comm.size());
            if rank > 0 {
                std::thread::sleep(PATIENCE);
            }
            console.error(&if size > 1 { error.context(format!("rank {rank} of {size}")) } else { error });
            comm.abort()
        }
    };
    drop(comm);
    // MPI waits for everybody here.
    drop(universe);
    code
}

/// Whether all processes end by themselves.
fn is_known_to_all(error: &Error) -> bool {
    let is_shared = |cause: &ocsc::Error| matches!(cause, ocsc::Error::Rank { .. } | ocsc::Error::Stopped);
    error.chain().any(|cause| {
        cause.is::<Interrupted>()
            || cause.is::<exit::PassedOver>()
            || cause.downcast_ref::<ocsc::Error>().is_some_and(is_shared)
    })
}

fn run(program: &Program, comm: &Arc<MpiComm>, console: &Console) -> Result<()> {
    let crew = |reproducible| Ranks::of(comm.clone(), reproducible);
    let threads = program.common.threads.unwrap_or_else(|| {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        (cores / comm.neighbours()).max(1)
    });
    Common { threads: Some(threads), ..program.common }.set_threads(console).context("--threads")?;
    match &program.command {
        Command::Learn(args) => commands::learn::run(&args.learn, &crew(args.reproducible), console)?,
        Command::Evaluate(args) => commands::evaluate::run(args, &crew(false), console)?,
        Command::Code(args) => commands::code::run(args, &crew(false), console)?,
    }
    let traffic = comm.traffic();
    if comm.size() > 1 {
        console.say(format!(
            "{} processes: {} received by rank 0 in {} collective operations, {:.2} s in them",
            comm.size(),
            ocsc::text::size(traffic.bytes as u64),
            traffic.calls,
            traffic.seconds
        ));
    }
    Ok(())
}
