//! Run-time choice of the vector unit, so that one binary runs everywhere.
//!
//! A hot loop is written once, in safe Rust that the compiler can vectorise, as a [`Kernel`]; [`dispatch`] runs it
//! compiled for the widest vector unit that the machine has. Besides the two calls below, unsafe code is only in the kernels that
//! name vector instructions: `coder/active_set/coarse.rs` and `coder/active_set/descend.rs`.

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
    #[cfg(target_arch = "x86_64")]
    {
        if K::WIDEST && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the features that `avx512` enables were detected on this machine.
            return unsafe { avx512(kernel) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features that `avx2` enables were detected on this machine.
            return unsafe { avx2(kernel) };
        }
    }
    kernel.run::<{ cfg!(target_arch = "aarch64") }>()
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
