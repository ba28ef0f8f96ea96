//! The system's memory: how much there is, and whether there is enough.

use crate::{Error, Result};

/// Needs up to this are not held against what is free: asking the system would take longer than most reads.
const SMALL: u64 = 16 << 20;

/// Refuses what needs more bytes than the system has free, where it says.
pub fn ensure_free(what: &str, need: u64) -> Result<()> {
    if need <= SMALL {
        return Ok(());
    }
    ensure_within(what, need, None)
}

/// Refuses what needs more bytes than the limit, or else than the system has free, where it says.
pub fn ensure_within(what: &str, need: u64, limit: Option<usize>) -> Result<()> {
    let (there, whose) = match (limit, available()) {
        (Some(limit), _) => (limit, "the memory limit allows"),
        (None, Some(free)) => (free, "the system has free"),
        (None, None) => return Ok(()),
    };
    if need <= there as u64 {
        return Ok(());
    }
    Err(Error::Memory { what: what.to_owned(), needed: need, available: there as u64, whose, advice: None })
}

/// Returns the bytes that the system could give, where it says.
pub fn available() -> Option<usize> {
    meminfo("MemAvailable:")
}

/// Returns the bytes that the system has in all, where it says.
pub fn total() -> Option<usize> {
    meminfo("MemTotal:")
}

/// Returns the bytes that this process holds, where the system says.
pub fn held() -> Option<usize> {
    line_of("/proc/self/status", "VmRSS:")
}

/// Returns the most bytes that this process has held, where the system says.
pub fn peak() -> Option<usize> {
    line_of("/proc/self/status", "VmHWM:")
}

fn meminfo(name: &str) -> Option<usize> {
    line_of("/proc/meminfo", name)
}

fn line_of(file: &str, name: &str) -> Option<usize> {
    bytes_of(&std::fs::read_to_string(file).ok()?, name)
}

/// Reads the number of kilobytes on the line that begins with this name.
fn bytes_of(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory() {
        let of = |text| bytes_of(text, "VmHWM:");
        assert_eq!(of("Name:\tocsc\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), Some(2048 * 1024));
        assert_eq!(of("Name:\tocsc\n"), None);
        if cfg!(target_os = "linux") {
            let (held, peak) = (held().unwrap(), peak().unwrap());
            assert!(peak > 1 << 20 && held > 1 << 20, "{held} {peak}");
        }
    }
}
