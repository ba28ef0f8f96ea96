//! `cargo xtask wheel` and `cargo xtask dist`: what users install without Rust.
//!
//! On Linux both are linked by zig, which comes from pip into `target/package-python`, against the symbols of an old C library: the wheel
//! is a manylinux one, and the program runs wherever glibc is at least [`GLIBC`].

use crate::python::{environment, pip, target};
use crate::{cargo, root, say, step};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The oldest C library that what is built here runs with: that of manylinux2014, and the oldest that Rust supports.
const GLIBC: (u32, u32) = (2, 17);

/// What builds packages.
const TOOLS: [&str; 3] = ["maturin==1.16.0", "ziglang==0.17.0", "cargo-zigbuild==0.24.0"];

/// The oldest Python that the wheel is for.
const OLDEST: u32 = 10;

/// Makes the wheel in `target/wheels`, and tries it in clean environments of the oldest and the newest Python that are here.
pub(crate) fn wheel() -> Result<()> {
    let tools = tools()?;
    let wheels = target().join("wheels");
    let mut maturin = tool(&tools, "maturin");
    maturin.args(["build", "--release", "--manifest-path", "python/Cargo.toml", "--out"]).arg(&wheels);
    if cfg!(target_os = "linux") {
        maturin.args(["--zig", "--compatibility", "manylinux2014", "--target", &host()?]);
    }
    step("wheel", maturin)?;
    let newest = newest(&wheels, ".whl")?;
    say(&format!("{}: {:.2} MB", newest.display(), size(&newest)? / 1e6));
    let pythons = pythons();
    ensure!(!pythons.is_empty(), "expected a Python from 3.{OLDEST} on to try the wheel with, found none");
    let mut tried: Vec<&(u32, PathBuf)> = vec![&pythons[0]];
    tried.extend(pythons.last().filter(|_| pythons.len() > 1));
    for (minor, python) in tried {
        try_wheel(&newest, *minor, python)?;
    }
    Ok(())
}

/// A first result: learn, code, and look at the certificate.
const FIRST: &str = "import numpy as np, ocsc
X = np.random.default_rng(0).standard_normal((20, 64, 64))
model = ocsc.OnlineCSC(n_filters=16, filter_shape=(8, 8), beta_ratio=0.2).fit(X)
codes = model.transform(X)
assert codes.gap.max() <= 0.01 and model.filters_.shape == (16, 8, 8)
print('ocsc', ocsc.__version__, 'numpy', np.__version__, 'worst gap', codes.gap.max())";

/// Installs the wheel into an empty environment of a Python, and makes a first result with it.
fn try_wheel(wheel: &Path, minor: u32, python: &Path) -> Result<()> {
    let folder = target().join(format!("wheel-3.{minor}"));
    let clock = Instant::now();
    step(&format!("Python 3.{minor}: environment"), Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--only-binary", ":all:"]).arg(wheel);
    step(&format!("Python 3.{minor}: install the wheel"), pip)?;
    // Not in the sources, whose package would be found first.
    let mut first = Command::new(folder.join("bin/python"));
    step(&format!("Python 3.{minor}: a first result"), first.args(["-c", FIRST]).current_dir(&folder))?;
    say(&format!("Python 3.{minor}: from the wheel to a first result in {:.0} s", clock.elapsed().as_secs_f64()));
    Ok(())
}

/// Returns the Pythons from [`OLDEST`] on, the oldest first: those of the path, and those that pyenv keeps.
fn pythons() -> Vec<(u32, PathBuf)> {
    let mut found = BTreeMap::new();
    let mut ask = |path: PathBuf| {
        let said = Command::new(&path).args(["-c", "import sys, ensurepip; print(*sys.version_info[:2])"]).output();
        let text = said.ok().filter(|output| output.status.success()).map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let minor = text.trim().strip_prefix("3 ").and_then(|minor| minor.parse::<u32>().ok());
        if let Some(minor) = minor.filter(|minor| *minor >= OLDEST) {
            found.entry(minor).or_insert(path);
        }
    };
    (OLDEST..40).map(|minor| PathBuf::from(format!("python3.{minor}"))).for_each(&mut ask);
    let kept = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let kept = kept.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv")));
    let versions = kept.and_then(|kept| std::fs::read_dir(kept.join("versions")).ok());
    versions.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python")).for_each(&mut ask);
    ask(PathBuf::from("python3"));
    found.into_iter().collect()
}

/// Makes a tarball of the program in `target/dist`: with completions, manual pages and licences, and checksums beside it.
pub(crate) fn dist() -> Result<()> {
    let host = host()?;
    let program = if cfg!(target_os = "linux") {
        let tools = tools()?;
        let mut build = tool(&tools, "cargo-zigbuild");
        let (major, minor) = GLIBC;
        build.args(["zigbuild", "--release", "-p", "ocsc-cli", "--target", &format!("{host}.{major}.{minor}")]);
        step("program", build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols"))?;
        target().join(&host).join("release/ocsc")
    } else {
        let mut build = cargo(&["build", "--release", "-p", "ocsc-cli"]);
        step("program", build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols"))?;
        target().join("release/ocsc")
    };
    if cfg!(target_os = "linux") {
        check_glibc(&program)?;
    }
    let name = format!("ocsc-{}-{host}", env!("CARGO_PKG_VERSION"));
    let dist = target().join("dist");
    let folder = dist.join(&name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    for part in ["bin", "completions", "man/man1"] {
        std::fs::create_dir_all(folder.join(part))?;
    }
    let installed = folder.join("bin/ocsc");
    std::fs::copy(&program, &installed).with_context(|| format!("cannot copy {}", program.display()))?;
    step("manual pages", Command::new(&installed).args(["man", "--out"]).arg(folder.join("man/man1")))?;
    for (shell, file) in [("bash", "ocsc.bash"), ("zsh", "_ocsc"), ("fish", "ocsc.fish"), ("powershell", "ocsc.ps1")] {
        let output = Command::new(&installed).args(["completions", shell]).output()?;
        ensure!(output.status.success(), "completions for {shell} failed");
        std::fs::write(folder.join("completions").join(file), output.stdout)?;
    }
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        std::fs::copy(root().join(file), folder.join(file))?;
    }
    std::fs::write(folder.join("THIRD-PARTY.md"), third_party()?)?;
    let tarball = format!("{name}.tar.gz");
    step("tarball", Command::new("tar").args(["-czf", &tarball, &name]).current_dir(&dist))?;
    let sums = Command::new("sha256sum").arg(&tarball).current_dir(&dist).output().context("sha256sum")?;
    ensure!(sums.status.success(), "sha256sum failed");
    std::fs::write(dist.join("SHA256SUMS"), sums.stdout)?;
    let sizes = (size(&installed)? / 1e6, size(&dist.join(&tarball))? / 1e6);
    say(&format!("{}: {:.1} MB, packed {:.1} MB", dist.join(tarball).display(), sizes.0, sizes.1));
    Ok(())
}

/// Checks that a program asks for no symbol of a C library newer than [`GLIBC`].
fn check_glibc(program: &Path) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let mark = b"GLIBC_2.";
    let versions: BTreeSet<u32> = (0..bytes.len().saturating_sub(mark.len()))
        .filter(|i| bytes[*i..].starts_with(mark))
        .filter_map(|i| {
            let rest = &bytes[i + mark.len()..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
        })
        .collect();
    let newest = versions.last().context("expected a program that is linked to glibc, found none")?;
    ensure!(*newest <= GLIBC.1, "expected symbols up to glibc 2.{}, found 2.{newest}", GLIBC.1);
    say(&format!("the program needs glibc 2.{newest} or later"));
    Ok(())
}

/// Returns the licences of what the program is built of, crate by crate, with their texts.
fn third_party() -> Result<String> {
    let output = cargo(&["metadata", "--format-version", "1", "--filter-platform", &host()?]).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = list(&metadata["packages"]);
    let program = packages.iter().find(|p| p["name"] == "ocsc-cli").context("the program in cargo's metadata")?;
    let wanted = closure(&metadata, text(&program["id"]));
    let mut used: Vec<&Value> = packages.iter().filter(|p| wanted.contains(text(&p["id"]))).collect();
    used.retain(|package| !package["source"].is_null());
    used.sort_by_key(|package| text(&package["name"]));
    let mut page = String::from(
        "# What the program is built of\n\nThe sources of all crates, unchanged, are where the last column says. Those under MPL-2.0 are free to \
         be had there under that licence.\n\n| crate | version | licence | source |\n|---|---|---|---|\n",
    );
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in used {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        writeln!(page, "| {name} | {version} | {} | {} |", text(&package["license"]), text(&package["repository"]))?;
        for licence in licences(Path::new(text(&package["manifest_path"])))? {
            texts.entry(licence).or_default().push(name);
        }
    }
    for (licence, names) in texts {
        writeln!(page, "\n## {}\n\n```text\n{}\n```", names.join(", "), licence.trim())?;
    }
    Ok(page)
}

/// Returns the packages that one is built of, itself included, without those of tests.
fn closure<'a>(metadata: &'a Value, first: &'a str) -> BTreeSet<&'a str> {
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    let mut found = BTreeSet::new();
    let mut next = vec![first];
    while let Some(id) = next.pop() {
        if !found.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).map(|node| list(&node["deps"])).unwrap_or_default() {
            if list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                next.push(text(&dependency["pkg"]));
            }
        }
    }
    found
}

/// Returns the texts of the licences that lie beside a manifest.
fn licences(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest in a folder")?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word))
    });
    files.sort();
    // Windows' line ends would make two texts of one.
    files.iter().map(|path| Ok(String::from_utf8_lossy(&std::fs::read(path)?).replace("\r\n", "\n"))).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the environment with what builds packages.
fn tools() -> Result<PathBuf> {
    let environment = environment("package-python")?;
    step("tools", pip(&environment).args(["install", "--quiet"]).args(TOOLS))?;
    Ok(environment)
}

/// Returns a tool of the environment, which finds the others beside it.
fn tool(environment: &Path, name: &str) -> Command {
    let own = environment.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(own.clone()).chain(std::env::split_paths(&path)));
    let mut command = Command::new(own.join(name));
    command.env("PATH", path.unwrap_or_default()).env("VIRTUAL_ENV", environment).current_dir(root());
    command
}

/// Returns what Rust calls this kind of machine.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("the host that rustc -vV names")
}

/// Returns the newest file with this ending in a folder.
fn newest(folder: &Path, ending: &str) -> Result<PathBuf> {
    let files = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let newest = files
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    match newest {
        Some(path) => Ok(path),
        None => bail!("{}: expected a file ending in {ending}, found none", folder.display()),
    }
}

/// Returns the bytes of a file.
fn size(path: &Path) -> Result<f64> {
    Ok(path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len() as f64)
}
