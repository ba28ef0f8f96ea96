//! Where the page is served: the address, its port, and what is wrong with either, said before anything is learned.

use crate::Unavailable;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::str::FromStr;

/// The port that is tried first, and how many after it.
const USUAL: u16 = 8765;
const AFTER: u16 = 20;

/// Where to serve the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address of this machine to serve on.
    pub bind: IpAddr,
    /// Its port.
    pub port: Port,
}

impl Default for Listen {
    fn default() -> Self {
        Listen { bind: IpAddr::V4(Ipv4Addr::LOCALHOST), port: Port::Free }
    }
}

/// The port of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Port {
    /// 8765, or the next that is free.
    #[default]
    Free,
    /// This one; 0 is any that the system gives.
    Is(u16),
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Port::Free),
            _ => text
                .parse()
                .map(Port::Is)
                .map_err(|_| "expected a port from 0 to 65535, or none for a free one".to_owned()),
        }
    }
}

impl Listen {
    /// Returns whether only this machine can connect.
    pub fn is_private(&self) -> bool {
        self.bind.is_loopback()
    }

    /// Begins to listen.
    pub(crate) fn bind(&self) -> Result<TcpListener, Unavailable> {
        let at = |port: u16| TcpListener::bind(SocketAddr::new(self.bind, port)).map_err(|error| (port, error));
        let bound = match self.port {
            Port::Is(port) => at(port),
            Port::Free => {
                let mut tried = at(USUAL);
                for port in (USUAL + 1..=USUAL + AFTER).chain([0]) {
                    tried = match tried {
                        Err((_, error)) if error.kind() == ErrorKind::AddrInUse => at(port),
                        other => other,
                    };
                }
                tried
            }
        };
        bound.map_err(|(port, error)| Unavailable(self.refused(port, &error)))
    }

    fn refused(&self, port: u16, error: &std::io::Error) -> String {
        let Listen { bind, .. } = self;
        match error.kind() {
            ErrorKind::AddrInUse => {
                format!(
                    "port {port}: expected a free one on {bind}, found one in use; without a number a free one is taken"
                )
            }
            ErrorKind::PermissionDenied => {
                format!("port {port}: expected one that this user may listen on, such as 8765, found {error}")
            }
            ErrorKind::AddrNotAvailable => {
                format!(
                    "address {bind}: expected one of this machine, such as 127.0.0.1 or 0.0.0.0 for all of them, found {error}"
                )
            }
            _ => format!("cannot listen on {}: {error}", SocketAddr::new(*bind, port)),
        }
    }

    /// Returns the address to open in a browser on this machine or, if others may connect, on theirs.
    pub(crate) fn url(&self, bound: SocketAddr, token: &str) -> String {
        let host = if self.bind.is_unspecified() { outward().unwrap_or(self.bind) } else { self.bind };
        let at = SocketAddr::new(host, bound.port());
        if self.is_private() { format!("http://{at}/") } else { format!("http://{at}/?token={token}") }
    }
}

/// Returns the address that this machine would connect to others from. No packet is sent.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_what_is_wrong_with_them() {
        assert_eq!("auto".parse(), Ok(Port::Free));
        assert_eq!("80".parse(), Ok(Port::Is(80)));
        for text in ["photos/", "70000", "-1", ""] {
            assert!(text.parse::<Port>().unwrap_err().contains("0 to 65535"), "{text}");
        }
        let first = Listen { port: Port::Is(0), ..Listen::default() }.bind().unwrap();
        let port = first.local_addr().unwrap().port();
        let error = Listen { port: Port::Is(port), ..Listen::default() }.bind().unwrap_err().to_string();
        assert!(error.contains(&format!("port {port}")) && error.contains("in use"), "{error}");
        let elsewhere = Listen { bind: "192.0.2.1".parse().unwrap(), port: Port::Is(0) };
        let error = elsewhere.bind().unwrap_err().to_string();
        assert!(error.contains("address 192.0.2.1") && error.contains("of this machine"), "{error}");
    }

    #[test]
    fn a_second_page_gets_the_next_port_and_only_others_need_a_token() {
        let (a, b) = (Listen::default().bind().unwrap(), Listen::default().bind().unwrap());
        let (a, b) = (a.local_addr().unwrap(), b.local_addr().unwrap());
        assert_ne!(a.port(), b.port());
        assert_eq!(Listen::default().url(a, "secret"), format!("http://127.0.0.1:{}/", a.port()));
        let all = Listen { bind: "0.0.0.0".parse().unwrap(), port: Port::Free };
        assert!(all.url(a, "secret").ends_with("/?token=secret"));
        let six = Listen { bind: "::1".parse().unwrap(), port: Port::Free };
        assert_eq!(six.url(a, "secret"), format!("http://[::1]:{}/", a.port()));
    }
}
