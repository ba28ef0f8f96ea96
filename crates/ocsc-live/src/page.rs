//! The page: one text with its style and script in it.
//!
//! The policy allows that one style and script, by their checksums, and nothing from elsewhere.

use crate::frame::Frame;
use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("../page/live.html");
const STYLE: &str = include_str!("../page/live.css");
const SCRIPT: &str = include_str!("../page/live.js");

/// Returns the page as a file: it shows one frame, needs no server and asks nobody for anything.
pub fn written(frame: &Frame) -> Result<String, serde_json::Error> {
    // No text in it can end the element that holds it.
    let data = serde_json::to_string(frame)?.replace('<', "\\u003c");
    Ok(filled("", &data, &policy("'none'")))
}

/// Returns the page that a server hands out, and the policy that it says in its header.
#[cfg(feature = "server")]
pub(crate) fn served(token: &str) -> (String, String) {
    let policy = policy("'self'");
    (filled(token, "", &policy), format!("{policy}; frame-ancestors 'none'"))
}

fn filled(token: &str, data: &str, policy: &str) -> String {
    let parts = [
        ("{{policy}}", policy),
        ("{{token}}", token),
        ("{{version}}", env!("CARGO_PKG_VERSION")),
        ("{{style}}", STYLE),
        ("{{script}}", SCRIPT),
        // Last: what comes from data is not looked into again.
        ("{{data}}", data),
    ];
    parts.iter().fold(PAGE.to_owned(), |page, (name, text)| page.replacen(name, text, 1))
}

fn policy(connect: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::About;

    #[test]
    fn the_page_is_whole_and_its_data_cannot_leave_their_element() {
        let about = About { title: "</script><script>alert(1)</script> {{token}}".to_owned(), rows: Vec::new() };
        let page = written(&Frame { about, ..Frame::default() }).unwrap();
        assert_eq!(page.matches("<script").count(), 2);
        assert!(!page.contains("{{policy}}") && !page.contains("{{data}}") && !page.contains("{{style}}"));
        assert!(page.contains(STYLE) && page.contains(SCRIPT) && page.contains("connect-src 'none'"));
        for wanted in ["http://", "https://"] {
            let allowed = page.matches("http://www.w3.org/2000/svg").count() * usize::from(wanted == "http://");
            assert_eq!(page.matches(wanted).count(), allowed, "{wanted}: nothing comes from elsewhere");
        }
    }
}
