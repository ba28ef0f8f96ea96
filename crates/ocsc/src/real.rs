//! The one scalar type parameter of the library: `f32` or `f64`.

use crate::array::Element;
use crate::setting::{HasKind, Kind};
use serde::{Deserialize, Serialize};
use std::fmt::{Debug, Display, LowerExp};
use std::iter::Sum;

/// Stands for a real scalar, `f32` or `f64`.
///
/// Kernels are generic over it; sums that decide something (objectives, gaps, norms) are accumulated in `f64`.
pub trait Real:
    sealed::Sealed
    + Element
    + rustfft::FftNum
    + num_traits::NumAssign
    + PartialOrd
    + Default
    + Display
    + LowerExp
    + Debug
    + Sum
{
    /// The scalar's name in options and model files.
    const NAME: &'static str;
    /// The scalar's tag in a safetensors file.
    const TENSOR: safetensors::Dtype;
    /// The scalar in settings.
    const DTYPE: Dtype;
    /// The rounding unit.
    const EPSILON: f64;
    /// The smallest normal number: below it, errors are no longer relative.
    const SMALLEST: f64;
    /// Samples hold no larger values: sums of their squares over any number of pixels and samples stay finite.
    const LARGEST: f64;

    /// Rounds from `f64`.
    fn of(value: f64) -> Self;
    /// Widens to `f64`.
    fn f64(self) -> f64;
    /// Returns the square root.
    fn root(self) -> Self;
    /// Returns the larger of two numbers; the first if they are not ordered.
    fn at_least(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
    /// Returns whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Returns `self * a + b`, in one rounding if `FMA`, in two otherwise.
    fn fused<const FMA: bool>(self, a: Self, b: Self) -> Self;
    /// Returns the same numbers, if they are of single precision: the way into code written for it alone.
    fn singles(values: &[Self]) -> Option<&[f32]>;
    /// The same, to be changed.
    fn singles_mut(values: &mut [Self]) -> Option<&mut [f32]>;
    /// Converts from single precision.
    fn single(value: f32) -> Self;
    /// Appends the little-endian bytes, for files.
    fn write_le(self, bytes: &mut Vec<u8>);
    /// Picks the one for this scalar.
    fn pick<P: PerScalar>(each: P) -> P::Of<Self>;
}

/// Stands for something that exists once for each scalar.
pub trait PerScalar {
    /// The one for a scalar.
    type Of<T: Real>;

    /// Returns the one for f32.
    fn single(self) -> Self::Of<f32>;

    /// Returns the one for f64.
    fn double(self) -> Self::Of<f64>;
}

mod sealed {
    /// Keeps others from adding scalars.
    pub trait Sealed {}

    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Names the scalar type, as a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// Single precision.
    #[default]
    F32,
    /// Double precision.
    F64,
}

impl HasKind for Dtype {
    const KIND: Kind = Kind::Choice(&["f32", "f64"]);
}

macro_rules! real {
    ($t:ident, $tensor:ident, $largest:expr, $singles:expr, $singles_mut:expr, $pick:ident) => {
        impl Real for $t {
            const NAME: &'static str = stringify!($t);
            const TENSOR: safetensors::Dtype = safetensors::Dtype::$tensor;
            const DTYPE: Dtype = Dtype::$tensor;
            const EPSILON: f64 = $t::EPSILON as f64;
            const SMALLEST: f64 = $t::MIN_POSITIVE as f64;
            const LARGEST: f64 = $largest;

            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn root(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn fused<const FMA: bool>(self, a: Self, b: Self) -> Self {
                if FMA { self.mul_add(a, b) } else { self * a + b }
            }
            #[inline(always)]
            fn singles(values: &[Self]) -> Option<&[f32]> {
                let singles: fn(&[Self]) -> Option<&[f32]> = $singles;
                singles(values)
            }
            #[inline(always)]
            fn singles_mut(values: &mut [Self]) -> Option<&mut [f32]> {
                let singles: fn(&mut [Self]) -> Option<&mut [f32]> = $singles_mut;
                singles(values)
            }
            #[inline(always)]
            fn single(value: f32) -> Self {
                value.into()
            }
            fn write_le(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn pick<P: PerScalar>(each: P) -> P::Of<Self> {
                each.$pick()
            }
        }
    };
}

real!(f32, F32, 1e12, |values| Some(values), |values| Some(values), single);
real!(f64, F64, 1e140, |_| None, |_| None, double);

/// Declares a function of which the library holds the copies for f32 and f64.
///
/// A generic function is compiled by whoever calls it with a scalar, together with all it calls. Declared in this way it is compiled
/// once, with the library, and not again by every program that uses it.
macro_rules! compiled {
    ($(#[$about:meta])* $vis:vis fn $name:ident<$T:ident>($($arg:ident: $type:ty),* $(,)?) -> $out:ty = $whole:path;) => {
        $(#[$about])*
        $vis fn $name<$T: $crate::Real>($($arg: $type),*) -> $out {
            struct Copies;

            impl $crate::PerScalar for Copies {
                type Of<$T: $crate::Real> = fn($($type),*) -> $out;

                // Inlined into another crate it would be compiled there again.
                #[inline(never)]
                fn single(self) -> Self::Of<f32> {
                    $whole
                }

                #[inline(never)]
                fn double(self) -> Self::Of<f64> {
                    $whole
                }
            }

            $T::pick(Copies)($($arg),*)
        }
    };
}
pub(crate) use compiled;
