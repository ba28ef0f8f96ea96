//! `cargo xtask site`: builds the site in `target/site`, with Sphinx in an environment of its own, `target/site-python`.
//!
//! `docs/build.py` does the work. Here is what it needs: the environment, the package, the program and the library's documentation.

use crate::python::{environment, install, is_there, pip, python, target};
use crate::{cargo, data, root, step};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Builds and checks the site; with `--draft`, without running the examples.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let draft = match words {
        [] => false,
        [word] if word == "--draft" => true,
        _ => anyhow::bail!("site: expected --draft or nothing, found {}", words.join(" ")),
    };
    ensure!(
        is_there((3, 11)),
        "the site needs a python3 from 3.11 on with venv and pip (on Debian: apt-get install python3-venv)"
    );
    let environment = environment("site-python")?;
    require(&environment)?;
    install(&environment, "./python")?;
    step("release build", cargo(&["build", "--release", "-p", "ocsc-cli"]))?;
    // Pages of other crates and of private items, which `cargo xtask test` leaves there, would come along.
    let documented = target().join("doc");
    if documented.exists() {
        std::fs::remove_dir_all(&documented).with_context(|| format!("cannot remove {}", documented.display()))?;
    }
    step("rustdoc", cargo(&["doc", "--no-deps", "-p", "ocsc"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    let program = target().join("release/ocsc");
    let mut build = python(&environment);
    build.arg(root().join("docs/build.py")).arg("--program").arg(&program).arg("--rustdoc").arg(&documented);
    build.arg("--data").arg(data()).arg("--out").arg(target().join("site"));
    if draft {
        build.arg("--draft");
    }
    step("pages", build)?;
    let mut pages = python(&environment);
    pages.args(["-m", "pytest", "--quiet", "tests/test_docs.py"]).env("OCSC_PROGRAM", program);
    step("code on the pages", pages)
}

/// Installs what the site needs, unless it is there already.
fn require(environment: &Path) -> Result<()> {
    let wanted = std::fs::read_to_string(root().join("docs/requirements.txt"))?;
    let stamp = environment.join("requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    step("Sphinx", pip(environment).args(["install", "--quiet", "-r", "docs/requirements.txt"]))?;
    Ok(std::fs::write(stamp, wanted)?)
}
