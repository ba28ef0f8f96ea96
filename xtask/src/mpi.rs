//! MPI: what `ocsc-mpi` is built with, and whether it is there.

use crate::say;
use std::path::Path;
use std::process::{Command, Stdio};

/// Debian's packages: the library with its compiler wrapper, `mpirun`, and what makes the bindings.
const PACKAGES: [&str; 3] = ["libopenmpi-dev", "openmpi-bin", "libclang-dev"];

/// What to say where it is not.
pub(crate) const ABSENT: &str = "ocsc-mpi and its tests: no MPI with libclang here (on Debian: apt-get install libopenmpi-dev openmpi-bin \
     libclang-dev; as root this command would have done it)";

/// Whether `ocsc-mpi` can be built and run, after installing what it needs where that is allowed.
pub(crate) fn is_there() -> bool {
    if !found() && is_root() {
        say("== MPI: installing");
        let apt = |words: &[&str]| {
            let mut command = Command::new("apt-get");
            let done = command.args(["-qq", "-y"]).args(words).env("DEBIAN_FRONTEND", "noninteractive").status();
            done.is_ok_and(|status| status.success())
        };
        if !(apt(&["update"]) && apt(&[&["install", "--no-install-recommends"][..], &PACKAGES].concat())) {
            say("== MPI: could not be installed");
        }
    }
    found()
}

fn found() -> bool {
    let runs = |program: &str| {
        let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    runs("mpicc") && runs("mpirun") && has_libclang()
}

/// Whether there is a libclang where bindgen looks for it.
fn has_libclang() -> bool {
    let folders = |parent: &str| std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let holds = |folder: &Path| {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.map(|file| file.file_name()).any(|name| {
            let name = name.to_string_lossy();
            name.starts_with("libclang.so") || name.starts_with("libclang-") && name.contains(".so")
        })
    };
    let llvm = folders("/usr/lib").filter(|path| path.to_string_lossy().contains("/llvm")).map(|path| path.join("lib"));
    let usual = ["/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    std::env::var_os("LIBCLANG_PATH").is_some() || llvm.chain(usual.map(Into::into)).any(|folder| holds(&folder))
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").output();
    asked.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
