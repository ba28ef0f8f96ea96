//! What several tests share.
#![allow(dead_code, unreachable_pub, reason = "every test file compiles its own copy and uses a part of it")]

use std::path::{Path, PathBuf};

/// The folder of reference data: `OCSC_DATA` if set, else `../shared/data` beside the workspace. Where there is none,
/// says so on stderr, and the test that asked should return.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen to be skipped")]
pub fn data_dir() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let dir = std::env::var_os("OCSC_DATA").map_or_else(beside, PathBuf::from);
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("skipped: ../shared/data is absent (set OCSC_DATA)");
    None
}
