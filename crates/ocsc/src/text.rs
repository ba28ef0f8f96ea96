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

/// `1 of 4 samples is`, `2 of 4 samples are`, with a verb for one and for many.
pub fn share(n: usize, all: usize, what: &str, [one, many]: [&str; 2]) -> String {
    format!("{n} of {} {}", counted(all, what), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::{counted, share};

    #[test]
    fn one_is_no_plural() {
        assert_eq!(["0 samples", "1 sample", "2 samples"], [0, 1, 2].map(|n| counted(n, "sample")));
        assert_eq!(["1 pass", "2 passes"], [1, 2].map(|n| counted(n, "pass")));
        assert_eq!(share(1, 1, "code", ["is", "are"]), "1 of 1 code is");
        assert_eq!(share(2, 4, "code", ["is", "are"]), "2 of 4 codes are");
    }
}
