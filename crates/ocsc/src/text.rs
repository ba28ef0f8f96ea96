//! Words for messages.

/// `1 sample`, `2 samples`, `3 passes`.
pub fn counted(n: usize, what: &str) -> String {
    let ending = match (n, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        _ => "s",
    };
    format!("{n} {what}{ending}")
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
