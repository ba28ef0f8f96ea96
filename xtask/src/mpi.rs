//! MPI: what `ocsc-mpi` is built with, and whether it is there.

use crate::say;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's packages: the library with its compiler wrapper, `mpirun`, and what makes the bindings.
const PACKAGES: [&str; 3] = ["libopenmpi-dev", "openmpi-bin", "libclang-dev"];

/// What to say where it is not.
pub(crate) const ABSENT: &str = "ocsc-mpi and its tests: no MPI with libclang here (on Debian: apt-get install libopenmpi-dev openmpi-bin \
     libclang-dev; as root this command would have done it)";

/// Whether `ocsc-mpi` can be built and run, after installing what it needs where that is allowed.
pub(crate) fn is_there() -> bool {
    if !found() && is_root() {
        install("MPI", &PACKAGES);
    }
    found()
}

/// Installs Debian's packages of what is called `name`.
pub(crate) fn install(name: &str, packages: &[&str]) -> bool {
    say(&format!("== {name}: installing"));
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        let done = command.args(["-qq", "-y"]).args(words).env("DEBIAN_FRONTEND", "noninteractive").status();
        done.is_ok_and(|status| status.success())
    };
    let installed = apt(&["update"]) && apt(&[&["install", "--no-install-recommends"][..], packages].concat());
    if !installed {
        say(&format!("== {name}: could not be installed"));
    }
    installed
}

fn found() -> bool {
    let runs = |program: &str| {
        let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    runs("mpicc") && runs("mpirun") && has_libclang()
}

/// Whether there is a libclang where bindgen looks for it, with the compiler's own headers.
fn has_libclang() -> bool {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_library = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let version = name.strip_prefix("libclang").and_then(|rest| rest.split_once(".so")).map(|(version, _)| version);
        version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || "-.".contains(c)))
    };
    let has_headers = |folder: &Path| entries(&folder.join("clang")).any(|v| v.join("include/stddef.h").exists());
    let mut folders: Vec<PathBuf> = ["/usr/lib64", "/usr/lib", "/usr/local/lib"].map(Into::into).to_vec();
    folders.extend(entries(Path::new("/usr/lib")).filter(|path| path.to_string_lossy().ends_with("-linux-gnu")));
    folders.extend(
        entries(Path::new("/usr/lib")).filter(|path| path.join("lib/clang").exists()).map(|path| path.join("lib")),
    );
    let library = std::env::var_os("LIBCLANG_PATH").is_some()
        || folders.iter().any(|folder| entries(folder).any(|path| is_library(&path)));
    library && folders.iter().any(|folder| has_headers(folder))
}

pub(crate) fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").output();
    asked.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
