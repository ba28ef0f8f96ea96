//! Builds and tests the Python package in an environment of its own, `target/python`; makes the files that are written from the
//! declarations of settings.

use crate::{root, step};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes the type stub of the constructor and `docs/settings.md`, from the declarations of settings.
pub(crate) fn generate() -> Result<()> {
    let environment = environment("python")?;
    install(&environment, "./python")?;
    step("Python: files that the settings make", python(&environment).arg("generate.py"))
}

/// Installs the package as users do, and runs its tests, the examples in its docstrings, and the type checkers. Says why it
/// could not, if there is no Python.
pub(crate) fn test() -> Result<Option<&'static str>> {
    if !is_there((3, 10)) {
        return Ok(Some(
            "the Python package and the files that settings make: no python3 from 3.10 on with venv and pip (on Debian: apt-get \
             install python3-venv)",
        ));
    }
    let environment = environment("python")?;
    install(&environment, "./python[test]")?;
    step("Python: files that the settings make", python(&environment).args(["generate.py", "--check"]))?;
    let tool = |name: &str| {
        let mut command = python(&environment);
        command.args(["-m", name]);
        command
    };
    // The tests compare with the program; `cargo test` built it.
    let program = target().join("debug").join("ocsc");
    step("Python: tests and docstrings", tool("pytest").args(["--quiet"]).env("OCSC_PROGRAM", program))?;
    step("Python: mypy", &mut tool("mypy"))?;
    step("Python: pyright", tool("pyright").arg("--pythonpath").arg(environment.join("bin/python")))?;
    Ok(None)
}

/// Returns the interpreter that the package was installed for, if it was.
pub(crate) fn interpreter() -> Option<PathBuf> {
    let path = target().join("python/bin/python");
    path.exists().then_some(path)
}

/// Returns whether there is a Python of this version or later to use, with what makes environments.
pub(crate) fn is_there((major, minor): (u32, u32)) -> bool {
    let needed = format!("import sys, venv, ensurepip; sys.exit(sys.version_info < ({major}, {minor}))");
    let asked = Command::new("python3").args(["-c", &needed]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Returns the environment of this name in the folder that cargo builds in, and makes it if it is not there yet.
pub(crate) fn environment(name: &str) -> Result<PathBuf> {
    let path = target().join(name);
    if !path.join("bin/pip").exists() {
        let mut venv = Command::new("python3");
        step("Python: environment", venv.args(["-m", "venv", "--clear"]).arg(&path))
            .context("python3 with venv and pip is needed (on Debian: apt-get install python3-venv)")?;
    }
    Ok(path)
}

/// Installs the package from its sources, with what it needs.
pub(crate) fn install(environment: &Path, what: &str) -> Result<()> {
    step("Python: build and install", pip(environment).args(["install", "--quiet", what]))
}

pub(crate) fn pip(environment: &Path) -> Command {
    let mut command = python(environment);
    command.args(["-m", "pip", "--disable-pip-version-check"]).current_dir(root());
    command
}

/// Returns the environment's interpreter, in the package's folder.
pub(crate) fn python(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin/python"));
    command.current_dir(root().join("python"));
    command
}

/// Returns the folder that cargo builds in.
pub(crate) fn target() -> PathBuf {
    let path = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // Commands run in other folders than this one.
    std::path::absolute(&path).unwrap_or(path)
}
