//! One part of a report: words, tables, figures and pictures of one experiment.

use super::Triplet;
use crate::report::chart::{Chart, quoted};

/// What one experiment has to show. Empty parts are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// What its files are called by, such as `fruit`.
    pub(crate) id: String,
    /// The heading.
    pub(crate) title: String,
    /// Settings and data of its runs, (name, value), where files say them.
    pub(crate) settings: Vec<(String, String)>,
    /// Paragraphs under it.
    pub(crate) notes: Vec<String>,
    pub(crate) tables: Vec<Table>,
    pub(crate) charts: Vec<Chart>,
    /// Dictionaries, (caption, PNG).
    pub(crate) mosaics: Vec<(String, Vec<u8>)>,
    /// Held-out samples.
    pub(crate) triplets: Vec<Triplet>,
}

/// A table with a row of names above it and a column of names at its left.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// What it shows.
    pub(crate) title: String,
    /// How to read it.
    pub(crate) note: String,
    pub(crate) head: Vec<String>,
    /// As long as `head`, each.
    pub(crate) rows: Vec<Vec<Entry>>,
}

/// One entry of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) text: String,
    /// The best of its column, or as good.
    pub(crate) best: bool,
}

impl Entry {
    pub(crate) fn plain(text: impl Into<String>) -> Entry {
        Entry { text: text.into(), best: false }
    }
}

impl Table {
    /// As comma-separated values, without the marks of the best.
    pub(crate) fn to_csv(&self) -> String {
        let line = |fields: Vec<String>| fields.join(",") + "\n";
        let rows = self.rows.iter().map(|row| line(row.iter().map(|e| quoted(&e.text)).collect()));
        line(self.head.iter().map(|h| quoted(h)).collect()) + &rows.collect::<String>()
    }

    /// As Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let line = |fields: Vec<String>| format!("| {} |\n", fields.join(" | "));
        let cell = |text: &str| text.replace('|', "\\|");
        let rows = self.rows.iter().map(|row| {
            line(row.iter().map(|e| if e.best { format!("**{}**", cell(&e.text)) } else { cell(&e.text) }).collect())
        });
        let head = line(self.head.iter().map(|h| cell(h)).collect());
        format!("{head}|{}\n{}", "---|".repeat(self.head.len()), rows.collect::<String>())
    }
}
