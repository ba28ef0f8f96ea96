//! The memory of this process, where the system tells (Linux).

/// Returns the bytes that the process holds, and the most it has held.
pub(crate) fn of_process() -> (Option<u64>, Option<u64>) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    };
    (of("VmRSS:"), of("VmHWM:"))
}
