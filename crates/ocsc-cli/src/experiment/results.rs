//! `experiments/RESULTS.md`: for each table and figure of the paper our result beside the printed one.

use super::runs::Runs;
use super::section;
use anyhow::{Context, Result};
use ocsc::replace::write_file;
use std::path::Path;

const HEAD: &str = "# The paper's experiments, and ours

Written by `ocsc reproduce` or `ocsc report` with `--results`; do not edit. The settings, the printed numbers and the sentences on
differences are in the TOML files of this folder. Times are processor times, of this machine; the paper's figures are not in
its text, so of them only what the text says about them is printed here. `not run` marks a method without finished runs.
";

/// Writes the page.
pub(crate) fn write(path: &Path, all: &[Runs], skipped: &[(String, String)]) -> Result<()> {
    let mut page = HEAD.to_owned();
    for runs in all {
        page += &of_experiment(runs)?;
    }
    for (name, why) in skipped {
        page += &format!("\n## {name}\n\nNot run: {}\n", why.replace("\n  ", " "));
    }
    write_file(path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn of_experiment(runs: &Runs) -> Result<String> {
    let section = section(runs)?;
    let mut text = format!("\n## {}\n", section.title);
    section.notes.iter().for_each(|note| text += &format!("\n{note}\n"));
    for table in &section.tables {
        text += &format!("\n**{}.** {}\n\n{}", table.title, table.note, table.to_markdown());
    }
    for printed in &runs.settings.printed {
        text += &format!("\n- {}: {}", printed.place, printed.says.trim());
        if !printed.differs.is_empty() {
            text += &format!(" **Ours:** {}", printed.differs.trim());
        }
    }
    text.push('\n');
    Ok(text)
}
