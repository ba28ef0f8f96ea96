//! `cargo xtask arrows`: the modules of a crate know each other in one direction only.
//!
//! An arrow goes from a top-level module to another one that its code names: by `use crate::...`, by `super::...` up to the
//! crate's root, or by a path within the code. Names that the root re-exports stand for the module that they come from.
//! Comments do not count, since documentation may point upwards, nor do unit tests at the end of a file.
//!
//! Checked are the layers, from which no arrow may go upwards, and the largest cycle: the most modules of which each reaches
//! each other along arrows. Without a cycle it is 1.

use crate::{root, say};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A crate whose arrows are looked at.
struct Checked {
    name: &'static str,
    /// The folder of its sources, from the workspace's.
    folder: &'static str,
    /// Its layers, the lowest first; every module is in one. A crate without layers may have arrows in any direction.
    layers: &'static [&'static [&'static str]],
    /// The largest cycle that is accepted; with none it is only told.
    most: Option<usize>,
}

/// The crates, as they are to stay.
const CHECKED: &[Checked] = &[
    Checked { name: "ocsc", folder: "crates/ocsc/src", layers: LIBRARY, most: Some(1) },
    Checked { name: "ocsc-cli", folder: "crates/ocsc-cli/src", layers: &[], most: Some(1) },
    Checked { name: "ocsc-live", folder: "crates/ocsc-live/src", layers: &[], most: Some(1) },
];

/// Data and kernels; the parts of methods; methods and settings; learners; training and its files; choosing beta; runs; tuning.
const LIBRARY: &[&[&str]] = &[
    &[
        "array",
        "axes",
        "boundary",
        "code",
        "conjugate_gradients",
        "constraint",
        "conversions",
        "convolve",
        "dead_leaves",
        "dictionary",
        "digest",
        "dot",
        "error",
        "events",
        "file",
        "fingerprint",
        "fourier",
        "loss",
        "metrics",
        "mixing",
        "monitor",
        "penalty",
        "preprocess",
        "random",
        "real",
        "replace",
        "sample",
        "setting",
        "sharing",
        "simd",
        "span",
        "sparsity",
        "spatial",
        "state",
        "synthetic_signals",
        "system",
        "text",
    ],
    &["coder", "comm", "restore", "statistics", "update"],
    &["memory", "method", "settings"],
    &["learner"],
    &["checkpoint", "train"],
    &["beta"],
    &["run", "verify"],
    &["tune"],
];

/// Modules with those that their code names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Looks at all crates.
pub(crate) fn run() -> Result<()> {
    let mut wrong = Vec::new();
    for checked in CHECKED {
        let arrows = arrows(&sources(&root().join(checked.folder))?);
        let cycle = largest_cycle(&arrows);
        say(&format!("{}: {} modules, {} in the largest cycle", checked.name, arrows.len(), cycle.len()));
        if cycle.len() > 1 {
            say(&format!("  {}", cycle.join(", ")));
        }
        if checked.most.is_some_and(|most| cycle.len() > most) {
            wrong.push(format!("{}: the largest cycle has {} modules", checked.name, cycle.len()));
        }
        let upwards = upwards(&arrows, checked.layers);
        wrong.extend(upwards.into_iter().map(|arrow| format!("{}: {arrow}", checked.name)));
    }
    if !wrong.is_empty() {
        bail!("expected arrows in one direction, found\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// A source file: its path within the crate's folder, in parts without the extension, and its text.
type Source = (Vec<String>, String);

/// Reads all source files of a folder.
fn sources(folder: &Path) -> Result<Vec<Source>> {
    let mut all = Vec::new();
    let mut folders = vec![(folder.to_owned(), Vec::new())];
    while let Some((folder, parts)) = folders.pop() {
        let told = || folder.display().to_string();
        for entry in std::fs::read_dir(&folder).with_context(told)? {
            let path = entry.with_context(told)?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let parts = [&parts[..], &[name]].concat();
            if path.is_dir() {
                folders.push((path, parts));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                all.push((parts, text));
            }
        }
    }
    all.sort();
    Ok(all)
}

/// The arrows between the top-level modules of a crate.
fn arrows(sources: &[Source]) -> Arrows {
    let is_root = |parts: &[String]| matches!(parts, [name] if name == "lib" || name == "main");
    let modules: BTreeSet<&str> =
        sources.iter().filter(|(parts, _)| !is_root(parts)).map(|(parts, _)| parts[0].as_str()).collect();
    let mut homes: BTreeMap<String, String> = modules.iter().map(|name| (name.to_string(), name.to_string())).collect();
    for (_, text) in sources.iter().filter(|(parts, _)| is_root(parts)) {
        homes.extend(reexports(&code(text), &modules));
    }
    let mut arrows: Arrows = modules.iter().map(|name| (name.to_string(), BTreeSet::new())).collect();
    for (parts, text) in sources.iter().filter(|(parts, _)| !is_root(parts) && !is_test(parts)) {
        let depth = parts.len() - usize::from(parts.last().is_some_and(|name| name == "mod"));
        let found = named(&code(text), depth).into_iter().filter_map(|name| homes.get(&name));
        let others = found.filter(|home| **home != parts[0]).cloned();
        arrows.entry(parts[0].clone()).or_default().extend(others);
    }
    arrows
}

/// Whether a file holds unit tests alone.
fn is_test(parts: &[String]) -> bool {
    parts.iter().any(|name| name == "tests")
}

/// A file's text without comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names that the root takes from its modules, each with its module.
fn reexports(text: &str, modules: &BTreeSet<&str>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for statement in text.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default().trim();
        let Some((module, rest)) = statement.trim_start_matches("crate::").split_once("::") else { continue };
        if modules.contains(module) {
            let last = |path: String| path.rsplit([':', ' ']).next().unwrap_or_default().to_owned();
            found.extend(branches(rest).into_iter().map(last).map(|name| (name, module.to_owned())));
        }
    }
    found
}

/// The names that stand directly below the crate's root in the paths of a module at this depth.
fn named(text: &str, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut from_root = |rest: &str| found.extend(branches(rest).iter().map(|path| identifier(path)));
    for (at, _) in text.match_indices("crate::").filter(|(at, _)| begins_word(text, *at)) {
        from_root(&text[at + "crate::".len()..]);
    }
    for (at, _) in text.match_indices("super::").filter(|(at, _)| begins_word(text, *at)) {
        let mut rest = &text[at..];
        let mut steps = 0;
        while let Some(above) = rest.strip_prefix("super::") {
            (rest, steps) = (above, steps + 1);
        }
        if steps == depth && !text[..at].ends_with("super::") {
            from_root(rest);
        }
    }
    found
}

/// Whether no letter or digit stands before a place.
fn begins_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The paths that a path, or a group of them in braces, begins with.
fn branches(text: &str) -> Vec<String> {
    let Some(group) = text.trim_start().strip_prefix('{') else {
        let end = text.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(text.len());
        return vec![text[..end].to_owned()];
    };
    let mut paths = vec![String::new()];
    let mut open = 1;
    for c in group.chars() {
        open = match c {
            '{' => open + 1,
            '}' => open - 1,
            _ => open,
        };
        match (c, open) {
            (_, 0) => break,
            (',', 1) => paths.push(String::new()),
            _ => paths.iter_mut().last().into_iter().for_each(|path| path.push(c)),
        }
    }
    paths.into_iter().map(|path| path.trim().to_owned()).filter(|path| !path.is_empty()).collect()
}

/// The identifier that a path begins with.
fn identifier(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The largest set of modules of which each reaches each other.
fn largest_cycle(arrows: &Arrows) -> Vec<String> {
    let reached = |start: &String| {
        let mut seen = BTreeSet::from([start.clone()]);
        let mut left = vec![start];
        while let Some(module) = left.pop() {
            left.extend(arrows.get(module).into_iter().flatten().filter(|next| seen.insert((*next).clone())));
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|name| (name, reached(name))).collect();
    let cycles = all.iter().map(|(name, seen)| {
        let back = |other: &&String| all.get(other).is_some_and(|from_there| from_there.contains(*name));
        seen.iter().filter(back).cloned().collect::<Vec<_>>()
    });
    cycles.max_by_key(Vec::len).unwrap_or_default()
}

/// The arrows that go to a higher layer, and modules without a layer, in words.
fn upwards(arrows: &Arrows, layers: &[&[&str]]) -> Vec<String> {
    if layers.is_empty() {
        return Vec::new();
    }
    let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let mut wrong = Vec::new();
    for (module, others) in arrows {
        let Some(own) = layer(module) else {
            wrong.push(format!("{module} is in no layer (xtask/src/arrows.rs)"));
            continue;
        };
        let higher = others.iter().filter(|other| layer(other).is_some_and(|theirs| theirs > own));
        wrong.extend(higher.map(|other| format!("{module} -> {other}, upwards")));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(files: &[(&str, &str)]) -> Arrows {
        let source =
            |(path, text): &(&str, &str)| (path.split('/').map(str::to_owned).collect::<Vec<_>>(), (*text).to_owned());
        arrows(&files.iter().map(source).collect::<Vec<_>>())
    }

    fn of(arrows: &Arrows, module: &str) -> Vec<String> {
        arrows[module].iter().cloned().collect()
    }

    #[test]
    fn a_made_up_cycle_is_found() {
        let arrows = made_up(&[
            ("lib", "mod real;\npub use sample::{Sample,\n    Shape as Form};\npub use real::Real;"),
            ("real", "use crate::parts;"),
            ("parts/mod", "mod inner;"),
            ("parts/inner", "fn f() { super::super::train::run() }"),
            ("train", "use crate::{\n    Form,\n    text::{counted, tell},\n};"),
            ("sample", "use super::Real;"),
            ("text", ""),
        ]);
        assert_eq!(of(&arrows, "train"), ["sample", "text"]);
        assert_eq!(largest_cycle(&arrows), ["parts", "real", "sample", "train"]);
        let layers: &[&[&str]] = &[&["real", "sample", "text"], &["parts"], &["train"]];
        assert_eq!(upwards(&arrows, layers), ["parts -> train, upwards", "real -> parts, upwards"]);
        assert_eq!(
            upwards(&arrows, &layers[..2]),
            ["real -> parts, upwards", "train is in no layer (xtask/src/arrows.rs)"]
        );
    }

    #[test]
    fn comments_tests_and_words_within_words_are_no_arrows() {
        let arrows = made_up(&[
            (
                "a",
                "//! See [`crate::b`].\nuse mycrate::b; // crate::b\nuse super::c::d;\n#[cfg(test)]\nmod tests { use crate::b; }",
            ),
            ("a/tests", "use crate::b;"),
            ("a/deeper/mod", "use super::b; use super::super::c;"),
            ("b", "use crate::a::{self, c}; macro_rules! m { () => { $crate::c::d } }"),
            ("c", "use crate::C;"),
        ]);
        assert_eq!(of(&arrows, "a"), ["c"]);
        assert_eq!(of(&arrows, "b"), ["a", "c"]);
        assert_eq!(of(&arrows, "c"), [""; 0]);
        assert_eq!(largest_cycle(&arrows).len(), 1);
    }

    /// The library itself, which has lost its cycle and is to stay without one.
    #[test]
    fn the_library_has_no_cycle() {
        run().unwrap();
    }
}
