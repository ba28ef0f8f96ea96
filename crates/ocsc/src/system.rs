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

fn meminfo(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?)
}
