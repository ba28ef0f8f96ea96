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

/// Writes `1 of 4 samples is`, `2 of 4 samples are`, with a verb for one and for many.
pub fn share(n: usize, all: usize, what: &str, [one, many]: [&str; 2]) -> String {
    format!("{n} of {} {}", counted(all, what), if n == 1 { one } else { many })
}

/// Returns depth, height and width as people write them, without the axes of length 1 before the first longer one: `20x24`.
pub fn extent(size: &[usize; 3]) -> String {
    let first = size.iter().position(|length| *length != 1).unwrap_or(2);
    size[first..].iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::{counted, extent, share};

    #[test]
    fn sizes_leave_out_axes_that_are_not_there() {
        assert_eq!(
            ["20x24", "7", "5x1x6", "1"],
            [[1, 20, 24], [1, 1, 7], [5, 1, 6], [1, 1, 1]].map(|size| extent(&size))
        );
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(["0 samples", "1 sample", "2 samples"], [0, 1, 2].map(|n| counted(n, "sample")));
        assert_eq!(["1 pass", "2 passes"], [1, 2].map(|n| counted(n, "pass")));
        assert_eq!(share(1, 1, "code", ["is", "are"]), "1 of 1 code is");
        assert_eq!(share(2, 4, "code", ["is", "are"]), "2 of 4 codes are");
    }
}
