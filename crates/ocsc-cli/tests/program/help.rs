//! Help, version and completions.

use crate::common::Bench;

#[test]
fn help_shows_examples_and_every_option() {
    let bench = Bench::new();
    let top = bench.run("--help").ok();
    for part in ["Start here", "ocsc demo", "learn", "code", "reconstruct", "evaluate", "show", "info"] {
        assert!(top.stdout.contains(part), "{}", top.stdout);
    }
    for command in [
        "learn",
        "code",
        "events",
        "reconstruct",
        "evaluate",
        "verify",
        "tune",
        "denoise",
        "inpaint",
        "show",
        "info",
        "demo",
        "compare",
        "reproduce",
        "report",
        "completions",
        "man",
    ] {
        let help = bench.run(&format!("help {command}")).ok().stdout;
        assert!(help.contains("Example") && help.contains(&format!("ocsc {command}")), "{help}");
        assert_eq!(bench.run(&format!("{command} --help")).ok().stdout, help);
        fills_its_lines(&help);
    }
    fills_its_lines(&top.stdout);
    let learn = bench.run("help learn").ok().stdout;
    for option in [
        "filters",
        "size",
        "beta",
        "beta-ratio",
        "preset",
        "method",
        "passes",
        "batch",
        "tol",
        "boundary",
        "init",
        "seed",
        "threads",
        "dtype",
        "preprocess",
        "axes",
        "recursive",
        "resize",
        "crop",
        "skip-small",
        "limit",
        "subset",
        "test-fraction",
        "test-list",
        "split",
        "log",
        "test-every",
        "test-seconds",
        "test-subset",
        "processor-time",
        "checkpoint-every",
        "time-limit",
        "json",
        "quiet",
        "test",
        "resume",
        "other-data",
        "out",
        "mask",
        "nan-is-missing",
        "window",
        "channel",
        "rate",
        "raw",
        "raw-format",
    ] {
        assert!(learn.contains(&format!("--{option}")), "{option}");
    }
}

#[test]
fn a_manual_page_for_each_command() {
    let bench = Bench::new();
    bench.run("man --out pages/man1").ok();
    for (name, part) in [("ocsc", "SUBCOMMANDS"), ("ocsc-learn", "beta\\-ratio"), ("ocsc-denoise", "sigma")] {
        let page = std::fs::read_to_string(bench.path(&format!("pages/man1/{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(part), "{name}: {page}");
    }
}

#[test]
fn version_and_completions() {
    let bench = Bench::new();
    assert_eq!(bench.run("--version").ok().stdout, format!("ocsc {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.run(&format!("completions {shell}")).ok().stdout;
        assert!(script.contains("beta-ratio"), "{shell}");
    }
    bench.run("completions tcl").refused(2, &["tcl", "bash"]);
    bench.run("").refused(2, &["Usage"]);
    bench.run("learm x").refused(2, &["learm", "learn"]);
}

/// Checks that the prose of a help text flows: no line ends before its width is used up.
fn fills_its_lines(help: &str) {
    let lines: Vec<&str> = help.lines().collect();
    for (line, next) in lines.iter().zip(&lines[1..]) {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        let word = next.split(' ').next().unwrap_or_default();
        let fits = line.len() + 1 + word.len() <= 100;
        assert!(!(is_prose(line) && is_prose(next) && fits), "expected {word:?} on the line {line:?}");
    }
}
