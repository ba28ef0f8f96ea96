//! Run-time choice of the vector unit, so that one binary runs everywhere.
//!
//! A hot loop is written once, in safe Rust that the compiler can vectorise, as a `Kernel`; `dispatch` runs it
//! compiled for the widest vector unit that the machine has. The environment variable `OCSC_SIMD` (avx512, avx2 or portable) takes a
//! lesser one, for tests and benchmarks. Besides the two calls below, unsafe code is only in the kernels that
//! name vector instructions: `coder/active_set/coarse`, `coder/active_set/descend` and `statistics/two_blocks.rs`, and
//! in `sharing.rs`, which hands tasks to threads that were called before.

use crate::{Error, Result};
use std::sync::LazyLock;

/// The environment variable that takes a lesser unit.
const VARIABLE: &str = "OCSC_SIMD";

/// A vector unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// AVX-512 F and VL, perhaps with products of 8-bit numbers.
    Avx512 { vnni: bool },
    /// AVX2 and FMA, perhaps with products of 8-bit numbers.
    Avx2 { vnni: bool },
    /// What every processor of the architecture has.
    Portable,
}

static PRESENT: LazyLock<Unit> = LazyLock::new(|| chosen(std::env::var(VARIABLE).ok().as_deref(), widest()));

impl Unit {
    /// Returns the unit that kernels run on.
    #[inline]
    pub(crate) fn present() -> Self {
        *PRESENT
    }
}

/// Names the vector unit that the coder's kernels run on: `avx512 vnni`, `avx512`, `avx2 vnni`, `avx2` or `portable`.
pub fn unit() -> &'static str {
    match Unit::present() {
        Unit::Avx512 { vnni: true } => "avx512 vnni",
        Unit::Avx512 { vnni: false } => "avx512",
        Unit::Avx2 { vnni: true } => "avx2 vnni",
        Unit::Avx2 { vnni: false } => "avx2",
        Unit::Portable => "portable",
    }
}

/// Refuses a value of `OCSC_SIMD` that the machine cannot obey. Without this check, the widest unit would be taken.
pub fn check() -> Result<()> {
    match std::env::var(VARIABLE) {
        Ok(asked) if !unit().starts_with(asked.as_str()) || asked.is_empty() => Err(Error::invalid(
            VARIABLE,
            format!("avx512, avx2 or portable, and no more than this machine has ({})", unit()),
            asked,
        )),
        _ => Ok(()),
    }
}

/// Returns the unit that was asked for, if the machine has it, and else the widest.
fn chosen(asked: Option<&str>, widest: Unit) -> Unit {
    match (asked, widest) {
        (Some("portable"), _) => Unit::Portable,
        (Some("avx2"), Unit::Avx512 { .. } | Unit::Avx2 { .. }) => Unit::Avx2 { vnni: false },
        _ => widest,
    }
}

fn widest() -> Unit {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
        let vnni = is_x86_feature_detected!("avx512vnni");
        return if avx512 { Unit::Avx512 { vnni } } else { Unit::Avx2 { vnni: is_x86_feature_detected!("avxvnni") } };
    }
    Unit::Portable
}

/// A hot loop. `run` must be `#[inline(always)]`, so that it is compiled anew for each vector unit.
pub(crate) trait Kernel {
    /// What the loop returns.
    type Output;
    /// Whether to use the widest registers; kernels made for 256 bits say no.
    const WIDEST: bool = true;
    /// The loop; `FMA` says that fused multiply-add is one instruction (see [`crate::Real::fused`]).
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Runs the kernel on the widest vector unit present.
#[allow(unsafe_code, reason = "calls of functions for vector units that were detected")]
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    match Unit::present() {
        // SAFETY: the features that `avx512` enables were detected on this machine.
        #[cfg(target_arch = "x86_64")]
        Unit::Avx512 { .. } if K::WIDEST => unsafe { avx512(kernel) },
        // SAFETY: the features that `avx2` enables were detected on this machine.
        #[cfg(target_arch = "x86_64")]
        Unit::Avx512 { .. } | Unit::Avx2 { .. } => unsafe { avx2(kernel) },
        _ => kernel.run::<{ cfg!(target_arch = "aarch64") }>(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}

#[cfg(test)]
mod tests {
    use super::{Unit, chosen};

    #[test]
    fn a_lesser_unit_can_be_asked_for_but_not_a_greater_one() {
        let (full, avx2) = (Unit::Avx512 { vnni: true }, Unit::Avx2 { vnni: false });
        assert_eq!(chosen(None, full), full);
        assert_eq!(chosen(Some("avx2"), full), avx2);
        assert_eq!(chosen(Some("avx2"), Unit::Avx2 { vnni: true }), avx2);
        assert_eq!(chosen(Some("portable"), avx2), Unit::Portable);
        assert_eq!(chosen(Some("avx512"), avx2), avx2);
        assert_eq!(chosen(Some("sse9"), avx2), avx2);
    }
}
