//! Backticks in the texts of a report, which mark code as in Markdown.

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span<'a> {
    pub(super) text: &'a str,
    /// Whether it stood between backticks, which are not in it.
    pub(super) is_code: bool,
}

/// Splits a text at its pairs of backticks. A backtick without a partner stays in the text.
pub(super) fn spans(text: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some((before, code, after)) = first_pair(rest) {
        spans.extend([Span { text: before, is_code: false }, Span { text: code, is_code: true }]);
        rest = after;
    }
    spans.push(Span { text: rest, is_code: false });
    spans.retain(|span| !span.text.is_empty());
    spans
}

/// Returns what stands before, between and after the first pair of backticks.
fn first_pair(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spans as text, code in angle brackets.
    fn marked(text: &str) -> String {
        let marked = |span: Span<'_>| if span.is_code { format!("<{}>", span.text) } else { span.text.to_owned() };
        spans(text).into_iter().map(marked).collect()
    }

    #[test]
    fn pairs_of_backticks_mark_code_and_single_ones_stay() {
        assert_eq!(marked("`--method fcsc`, `OCSC_SIMD=portable`"), "<--method fcsc>, <OCSC_SIMD=portable>");
        assert_eq!(marked("as `ocsc` is"), "as <ocsc> is");
        assert_eq!(marked("a`b.jsonl"), "a`b.jsonl");
        assert_eq!(marked("`a` and b`"), "<a> and b`");
        assert_eq!(marked(""), "");
    }
}
