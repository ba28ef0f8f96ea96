//! `ocsc report`: one page of many runs.

use crate::args::Summarise;
use crate::console::Console;
use crate::experiment::runs::Runs;
use crate::experiment::{results, section};
use crate::report::{Report, write};
use crate::run::outputs::Outputs;
use anyhow::{Result, ensure};
use std::path::Path;

pub(crate) fn run(args: &Summarise, console: &Console) -> Result<()> {
    let runs = Runs::open(&args.runs)?;
    let mut files = Outputs::default();
    files.read("the log of a run", args.runs.iter().filter(|path| path.is_file()));
    for runs in &runs {
        files.read("the record of a run", runs.files()?);
    }
    args.results.as_ref().map_or(Ok(()), |path| check_results(path, &mut files))?;
    let words: Vec<String> = args.runs.iter().map(|path| path.display().to_string()).collect();
    let command = format!("ocsc report {} --out {}", words.join(" "), args.out.display());
    page(&args.out, &runs, &command, &mut files, console)?;
    args.results.as_ref().map_or(Ok(()), |path| results(path, &runs, &[], console))
}

/// Checks the name for our results: data never end in .md, and none of the command's `files` may be replaced.
pub(crate) fn check_results(path: &Path, files: &mut Outputs) -> Result<()> {
    let is_markdown = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("md"));
    ensure!(is_markdown, "--results {}: expected a name ending in .md", path.display());
    files.write("--results", path).map(drop)
}

/// Writes our results beside the printed ones, and says where. `skipped` are experiments without data, (name, why).
pub(crate) fn results(path: &Path, all: &[Runs], skipped: &[(String, String)], console: &Console) -> Result<()> {
    results::write(path, all, skipped)?;
    console.result(format!("wrote {}", path.display()))
}

/// Writes the page of these experiments, which may be none of the command's other `files`, and says where.
pub(crate) fn page(out: &Path, all: &[Runs], command: &str, files: &mut Outputs, console: &Console) -> Result<()> {
    let is_html = out.extension().is_some_and(|e| e.eq_ignore_ascii_case("html"));
    ensure!(is_html, "--out {}: expected a name ending in .html", out.display());
    let title = match all {
        [one] => one.settings.title.clone(),
        _ => "Convolutional sparse coding, method by method".to_owned(),
    };
    let n: usize = all.iter().map(|runs| runs.runs.len()).sum();
    let lead = match all.len() {
        1 => format!("{n} {}. Every number on this page is read from their logs.", if n == 1 { "run" } else { "runs" }),
        m => format!("{m} experiments, {n} runs. Every number on this page is read from their logs."),
    };
    let sections = all.iter().map(section).collect::<Result<Vec<_>>>()?;
    let report = Report { title, lead, sections, command: command.to_owned(), ..Report::default() };
    let figures = write(out, &report, files)?;
    console.result(format!("open {} (its figures as SVG and CSV: {})", out.display(), figures.display()))
}
