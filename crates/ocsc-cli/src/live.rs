//! The live page of `learn` and `demo`: opened before anything is learned, and left when it is.

use crate::args::LiveArgs;
use crate::console::Console;
use crate::interrupt;
use anyhow::{Context, Result};
use ocsc_live::Live;

/// Begins to serve the page, if it is wanted, and says where.
pub(crate) fn open(args: &LiveArgs, console: &Console) -> Result<Option<Live>> {
    let Some(listen) = args.listen() else { return Ok(None) };
    let live = Live::of_run(&listen, interrupt::stop).context("--live")?;
    console.say(format!("live page: {}", live.url()));
    Ok(Some(live))
}

/// Leaves the page of a run that is over. In front of a terminal it stays until Ctrl-C, unless the run was stopped or failed; a
/// page that is open stays readable anyhow.
pub(crate) fn leave(live: Option<Live>, is_done: bool, console: &Console) {
    let Some(live) = live else { return };
    if is_done && console.is_terminal() && !interrupt::interrupted() {
        console.say(format!("the run is over; its page stays at {} until Ctrl-C", live.url()));
        interrupt::wait_for_it();
    }
    live.close();
}
