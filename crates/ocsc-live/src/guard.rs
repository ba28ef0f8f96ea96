//! Who is let in.
//!
//! A page in another tab may send requests here too. It cannot read the answers unless its own name leads to this machine (DNS
//! rebinding), so the `Host` must be one of ours: an address in numbers, `localhost`, or the machine's name where others may
//! connect. The buttons need the token, which only a reader of the page knows.

use std::net::IpAddr;

/// The bytes of a token.
const TOKEN: usize = 16;

/// Returns a token that nobody can guess, if the system has randomness.
pub(crate) fn token() -> Option<String> {
    let mut bytes = [0; TOKEN];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns whether two tokens are equal, in a time that does not tell where they differ.
pub(crate) fn is_equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Returns whether a `Host` is a name of this server. Ports may differ: an ssh tunnel has its own.
pub(crate) fn is_ours(host: &str, is_private: bool) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.to_ascii_lowercase();
    if name == "localhost" {
        return true;
    }
    match name.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback() || !is_private,
        Err(_) => !is_private && machine().is_some_and(|own| name == own || name.starts_with(&format!("{own}."))),
    }
}

/// Returns the machine's name, where the system tells.
fn machine() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for host in ["127.0.0.1:8765", "localhost:1", "localhost", "LOCALHOST:80", "[::1]:8765", "127.0.0.1"] {
            assert!(is_ours(host, true) && is_ours(host, false), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "localhost.evil.example", ":8765"]
        {
            assert!(!is_ours(host, true), "{host}");
        }
        assert!(!is_ours("192.168.1.5:8765", true) && is_ours("192.168.1.5:8765", false));
        assert!(!is_ours("evil.example:8765", false));
    }

    #[test]
    fn tokens_are_new_and_compared_as_a_whole() {
        let (a, b) = (token().unwrap(), token().unwrap());
        assert!(a != b && a.len() == 2 * TOKEN);
        assert!(is_equal(&a, &a.clone()) && !is_equal(&a, &b) && !is_equal(&a, "") && !is_equal(&a, &a[1..]));
    }
}
