//! What a trace tells: which calls the program makes after it has been loaded.

use std::collections::HashMap;
use std::ops::RangeInclusive;

/// The calls of a clean run.
pub(super) struct Calls {
    /// By name, of the first thread: how many come before the program's own, and how many there are.
    main: HashMap<String, (usize, usize)>,
    /// How often one thread opens the data, at most.
    pub(super) of_data: usize,
}

impl Calls {
    /// Reads the lines of `strace -f -o`; `data` is the name of the data file.
    pub(super) fn of(trace: &str, data: &str) -> Self {
        let mut main: HashMap<String, (usize, usize)> = HashMap::new();
        let mut of_data: HashMap<&str, usize> = HashMap::new();
        let first = trace.split_whitespace().next().unwrap_or_default();
        let (mut looked_up, mut loaded) = (false, false);
        for line in trace.lines() {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let Some((name, rest)) = call.trim_start().split_once('(') else { continue };
            if name == "openat" && rest.contains(&format!("\"{data}\"")) {
                *of_data.entry(thread).or_default() += 1;
            }
            if thread != first {
                continue;
            }
            let (before, all) = main.entry(name.to_owned()).or_default();
            *before += usize::from(!loaded);
            *all += 1;
            // The Rust runtime looks up the stack, and asks for another one for signals, before it calls `main`.
            looked_up |= rest.contains("/proc/self/maps");
            loaded |= looked_up && name == "mmap";
        }
        Calls { main, of_data: of_data.into_values().max().unwrap_or(0) }
    }

    /// The numbers of the program's own calls with one of these names, separated by commas.
    pub(super) fn range(&self, names: &str) -> RangeInclusive<usize> {
        let found = names.split(',').filter_map(|name| self.main.get(name));
        let (before, all) = found.fold((0, 0), |(a, b), (before, all)| (a + before, b + all));
        before + 1..=all
    }
}
