//! Words for messages.

/// Returns a count with its noun: `1 sample`, `2 samples`, `3 passes`.
pub fn counted(n: usize, what: &str) -> String {
    let ending = match (n, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        _ => "s",
    };
    format!("{n} {what}{ending}")
}

/// Returns bytes as text: 1234567 as `1.2 MB`.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(["0 samples", "1 sample", "2 samples"], [0, 1, 2].map(|n| counted(n, "sample")));
        assert_eq!(["1 pass", "2 passes"], [1, 2].map(|n| counted(n, "pass")));
    }
}
