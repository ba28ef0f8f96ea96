//! The program `ocsc`. All of it is in the library beside this file, which `ocsc-mpi` uses too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ocsc_cli::main()
}
