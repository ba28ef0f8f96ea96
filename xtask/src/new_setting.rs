//! Checks that a new setting takes the two edits that CONTRIBUTING.md shows, and no third one.
//!
//! The edits are read from that page and made to a copy of the sources. The program and the Python package are built from the
//! copy, hardly optimised, in `target/new-setting`. Then the setting must be found among the flags, in a model file, which must
//! have been learned as the setting says, and in the signature and the documentation of Python's estimator.

use crate::python::{self, target};
use crate::{cargo, root, step};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The name of the setting that the page adds.
const NAME: &str = "plain_average";
/// Its place in what `ocsc info --json` prints.
const PLACE: &str = "/config/block_descent/plain_average";
/// The page, and its section.
const PAGE: &str = "CONTRIBUTING.md";
const SECTION: &str = "\n## Adding a setting\n";
/// What the program and the package are built from.
const SOURCES: [&str; 7] = ["Cargo.toml", "Cargo.lock", "README.md", "crates", "experiments", "python", "xtask"];

/// Prints what the Python package says of the setting, one fact a line. The argument is a model that was learned with it.
const LOOK: &str = "
import inspect, sys, ocsc
print(inspect.signature(ocsc.OnlineCSC).parameters[sys.argv[1]])
print(f'{sys.argv[1]} : bool, default=False' in ocsc.OnlineCSC.__doc__)
print(ocsc.load(sys.argv[2]).get_params()[sys.argv[1]])
";

/// Makes the two edits to a copy, builds it and looks. Says what it could not look at, if there is no Python.
pub(crate) fn test() -> Result<Option<&'static str>> {
    let folder = target().join("new-setting");
    let source = folder.join("source");
    fs::create_dir_all(&source)?;
    let page = fs::read_to_string(root().join(PAGE)).context(PAGE)?;
    let edits = edits(&page)?;
    ensure!(edits.len() == 2, "{PAGE}: expected two edits in the section{SECTION}found {}", edits.len());
    for name in SOURCES {
        copy(&root().join(name), &source.join(name), &edits)?;
    }
    let built = folder.join("target");
    let mut build = cargo(&["build", "--quiet", "--package", "ocsc-cli", "--package", "ocsc-python"]);
    build.current_dir(&source).env("CARGO_TARGET_DIR", &built);
    build.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_INCREMENTAL", "0");
    step("a new setting: build with its two edits", build)?;
    let model = look_at_program(&folder, &built.join("debug/ocsc"))?;
    let Some(interpreter) = python::interpreter() else {
        return Ok(Some("a new setting in Python: there is no python3 to look with"));
    };
    let package = source.join("python/python");
    let library = format!("{}_native{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    fs::copy(built.join("debug").join(library), package.join("ocsc/_native.abi3.so"))?;
    let mut python = Command::new(interpreter);
    python.args(["-c", LOOK, NAME]).arg(model).env("PYTHONPATH", package);
    let found = output(&mut python)?;
    let expected = format!("{NAME}: 'bool' = False\nTrue\nTrue\n");
    ensure!(found == expected, "Python: expected {expected:?}, found {found:?}");
    Ok(None)
}

/// Finds the setting in the program's flags and in a model file, and that learning obeyed it. Returns the model file.
fn look_at_program(folder: &Path, program: &Path) -> Result<std::path::PathBuf> {
    let flag = format!("--{}", NAME.replace('_', "-"));
    let help = output(Command::new(program).args(["help", "learn"]))?;
    ensure!(help.contains(&flag), "ocsc help learn: expected {flag}, found\n{help}");
    let images = folder.join("images");
    fs::create_dir_all(&images)?;
    for image in 0..3_u32 {
        let grays = (0..24 * 24).map(|i: u32| ((i + 1) * (i + 7 * image + 3) % 251) as u8);
        let bytes: Vec<u8> = b"P5 24 24 255\n".iter().copied().chain(grays).collect();
        fs::write(images.join(format!("{image}.pgm")), bytes)?;
    }
    let model = folder.join("model.safetensors");
    let learn = |flags: &[&str]| -> Result<Value> {
        let mut learn = Command::new(program);
        learn.args(["learn", "--quiet", "--force", "--filters", "3", "--size", "5", "--beta", "0.1"]).args(flags);
        output(learn.arg(&images).arg("--out").arg(&model))?;
        Ok(serde_json::from_str(&output(Command::new(program).args(["info", "--json"]).arg(&model))?)?)
    };
    let (without, same) = (learn(&[])?, learn(&["--forgetting", "1"])?);
    let with = learn(&[&flag])?;
    ensure!(without.pointer(PLACE) == Some(&Value::Bool(false)), "ocsc info: expected false at {PLACE} in {without:#}");
    ensure!(with.pointer(PLACE) == Some(&Value::Bool(true)), "ocsc info: expected true at {PLACE} in {with:#}");
    let [without, same, with] = [without, same, with].map(|model| model["dictionary_checksum"].clone());
    ensure!(with == same && with != without, "{flag}: expected a dictionary as with --forgetting 1, and no other");
    Ok(model)
}

/// An edit to a file: a text in it, and what is to stand in its place.
struct Edit {
    path: String,
    old: String,
    new: String,
}

impl Edit {
    /// Returns the text of the file after the edit.
    fn apply(&self, text: &str) -> Result<String> {
        let Edit { path, old, new } = self;
        let places = text.matches(old).count();
        ensure!(places == 1, "{PAGE} edits {path} where it says\n{old}expected one such place, found {places}");
        Ok(text.replacen(old, new, 1))
    }
}

/// Reads the edits of the page's section: blocks of the language `diff`, which begin with the name of the file.
fn edits(page: &str) -> Result<Vec<Edit>> {
    let Some((_, section)) = page.split_once(SECTION) else { bail!("{PAGE}: expected a section{SECTION}") };
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```diff\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.map(edit).collect()
}

fn edit(block: &str) -> Result<Edit> {
    let (mut old, mut new) = (String::new(), String::new());
    let Some((path, lines)) = block.strip_prefix("+++ ").and_then(|block| block.split_once('\n')) else {
        bail!("{PAGE}: expected an edit that begins with +++ and the name of a file, found\n{block}");
    };
    for line in lines.lines() {
        let Some((sign, text)) = line.split_at_checked(1) else { continue };
        if sign != "+" {
            old += &format!("{text}\n");
        }
        if sign != "-" {
            new += &format!("{text}\n");
        }
    }
    ensure!(root().join(path).is_file(), "{PAGE} edits {path}: expected a file, found none");
    Ok(Edit { path: path.to_owned(), old, new })
}

/// Copies a file, or a folder with all that is in it, and makes the edits. Leaves files alone that are right already, so that
/// cargo does not build them again.
fn copy(from: &Path, to: &Path, edits: &[Edit]) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            let is_cache = name == "__pycache__" || name.to_string_lossy().starts_with('.');
            if !is_cache {
                copy(&from.join(&name), &to.join(&name), edits)?;
            }
        }
        return Ok(());
    }
    let mut bytes = fs::read(from).with_context(|| from.display().to_string())?;
    for edit in edits.iter().filter(|edit| from == root().join(&edit.path)) {
        bytes = edit.apply(&String::from_utf8(bytes)?)?.into_bytes();
    }
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::write(to, bytes).with_context(|| to.display().to_string())
}

/// Returns what a command prints; refuses one that fails.
fn output(command: &mut Command) -> Result<String> {
    let done = command.output().with_context(|| format!("{command:?}: cannot be started"))?;
    ensure!(done.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
