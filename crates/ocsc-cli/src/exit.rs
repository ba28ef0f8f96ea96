//! Exit codes: 0 done, 1 failed, 2 bad usage (clap), 3 done, but samples were passed over, 130 interrupted.

use crate::console::{Console, counted, told};
use crate::interrupt::{self, Interrupted};
use crate::memory::Refusal;
use anyhow::{Error, Result};

/// The exit code of a command that passed over samples.
pub(crate) const PASSED_OVER: u8 = 3;

/// All is done, but some samples could not be used.
#[derive(Debug)]
pub struct PassedOver(pub(crate) String);

impl std::fmt::Display for PassedOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PassedOver {}

/// Ends a command that passed over so many units of its work (samples, images): with [`PassedOver`], unless the call said that
/// this is well, by --skip-bad.
pub(crate) fn check_passed_over(count: usize, unit: &str, skip_bad: bool) -> Result<()> {
    if count == 0 || skip_bad {
        return Ok(());
    }
    let units = counted(count, unit);
    Err(PassedOver(format!("passed over as unusable: {units}; so the exit code is {PASSED_OVER} (with --skip-bad 0)"))
        .into())
}

/// Says why a command did not end well, and returns the exit code.
pub fn report(error: &Error, console: &Console) -> u8 {
    let is_interrupt = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<Interrupted>() || matches!(cause.downcast_ref(), Some(ocsc::Error::Stopped))
    };
    if error.chain().any(is_interrupt) {
        console.error(error);
        interrupt::EXIT_CODE
    } else if error.chain().any(|cause| cause.is::<PassedOver>()) {
        console.say(told(error));
        PASSED_OVER
    } else {
        console.error(error);
        Refusal::tell(error);
        1
    }
}
