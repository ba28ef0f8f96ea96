//! The options of the live page, and of `view`.

use clap::Args as ClapArgs;
use ocsc_live::{Listen, Port};
use std::net::IpAddr;
use std::path::PathBuf;

/// Where the live page of a run is served, if it is.
#[derive(ClapArgs)]
pub(crate) struct LiveArgs {
    /// Serve a page on this machine that shows filters, curves and the newest sample while they change, with buttons to pause and
    /// stop. On this port [default: 8765, or the next that is free]
    #[arg(long, num_args = 0..=1, default_missing_value = "auto", value_name = "PORT")]
    pub(crate) live: Option<Port>,
    /// Serve it on this address instead of 127.0.0.1, such as 0.0.0.0 for all of the machine's. The printed address has a token, which
    /// whoever opens the page needs
    #[arg(long, requires = "live", value_parser = address, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
}

impl LiveArgs {
    /// Returns where to serve the page, if it is wanted.
    pub(crate) fn listen(&self) -> Option<Listen> {
        self.live.map(|port| listen(port, self.bind))
    }
}

/// The options of `view`.
#[derive(ClapArgs)]
pub(crate) struct View {
    /// A log of `ocsc learn` (.jsonl), a model, codes (.npz, or a folder of them), or several of these that belong together
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the page to a file instead of serving it
    #[arg(long, value_name = "PAGE.html", conflicts_with_all = ["port", "bind"])]
    pub(crate) out: Option<PathBuf>,
    /// The port [default: 8765, or the next that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<Port>,
    /// Serve it on this address instead of 127.0.0.1, such as 0.0.0.0 for all of the machine's. The printed address has a token, which
    /// whoever opens the page needs
    #[arg(long, value_parser = address, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
}

impl View {
    /// Returns where to serve the page.
    pub(crate) fn listen(&self) -> Listen {
        listen(self.port.unwrap_or_default(), self.bind)
    }
}

fn listen(port: Port, bind: Option<IpAddr>) -> Listen {
    Listen { port, bind: bind.unwrap_or(Listen::default().bind) }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "expected an address of this machine in numbers, such as 127.0.0.1 or 0.0.0.0".to_owned())
}
