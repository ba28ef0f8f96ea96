//! Flat arrays of numbers of one type each, as files hold them.

use safetensors::Dtype;
use std::borrow::Cow;

/// Stands for a number that an [`Array`] can hold.
pub trait Element: bytemuck::Pod {
    /// Makes an array of these numbers.
    fn array(values: Cow<'_, [Self]>) -> Array<'_>;

    /// Returns the numbers of an array of this type; none if it is of another.
    fn values<'s>(array: &'s Array<'_>) -> Option<&'s [Self]>;
}

macro_rules! arrays {
    ($($variant:ident = $number:ident: $about:literal;)*) => {
        /// Holds a flat array of numbers of one type.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Array<'a> {
            $(#[doc = $about] $variant(Cow<'a, [$number]>),)*
        }

        $(impl Element for $number {
            fn array(values: Cow<'_, [Self]>) -> Array<'_> {
                Array::$variant(values)
            }

            fn values<'s>(array: &'s Array<'_>) -> Option<&'s [Self]> {
                if let Array::$variant(values) = array { Some(values) } else { None }
            }
        })*

        impl Array<'_> {
            /// Returns the numbers that a tensor holds; none for types that no array has.
            pub(crate) fn read(dtype: Dtype, bytes: &[u8]) -> Option<Array<'static>> {
                Some(match dtype {
                    $(Dtype::$variant => {
                        // Copied number by number: a file gives no alignment.
                        let number = |bytes: &[u8; size_of::<$number>()]| $number::from_le_bytes(*bytes);
                        Array::$variant(bytes.as_chunks().0.iter().map(number).collect())
                    })*
                    _ => return None,
                })
            }

            /// Returns the type of the numbers, as a tensor has it.
            pub(crate) fn dtype(&self) -> Dtype {
                match self {
                    $(Array::$variant(_) => Dtype::$variant,)*
                }
            }

            /// Returns how many numbers there are.
            pub(crate) fn len(&self) -> usize {
                match self {
                    $(Array::$variant(values) => values.len(),)*
                }
            }

            /// Returns the numbers as a file holds them, the least byte first.
            pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
                match self {
                    $(Array::$variant(values) if cfg!(target_endian = "little") => {
                        Cow::Borrowed(bytemuck::cast_slice(values))
                    })*
                    $(Array::$variant(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),)*
                }
            }
        }
    };
}

arrays! {
    F32 = f32: "Numbers in single precision.";
    F64 = f64: "Numbers in double precision.";
    U8 = u8: "Small whole numbers: flags.";
    U32 = u32: "Indices.";
    U64 = u64: "Counts.";
}

impl Array<'_> {
    /// Returns the first number that is infinite or NaN.
    pub(crate) fn not_finite(&self) -> Option<f64> {
        match self {
            Array::F32(values) => values.iter().find(|v| !v.is_finite()).map(|v| f64::from(*v)),
            Array::F64(values) => values.iter().find(|v| !v.is_finite()).copied(),
            Array::U8(_) | Array::U32(_) | Array::U64(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives<E: Element + PartialEq + std::fmt::Debug>(values: &[E]) {
        let array = E::array(Cow::Borrowed(values));
        // From an odd place, as in the middle of a file.
        let bytes = [&[7], &*array.bytes()].concat();
        let read = Array::read(array.dtype(), &bytes[1..]).unwrap();
        assert_eq!((&read, read.len()), (&array, values.len()));
        assert_eq!(E::values(&read), Some(values));
        assert!(array.not_finite().is_none());
    }

    #[test]
    fn arrays_survive_their_bytes() {
        survives(&[1.5_f32, -0.0, f32::MIN_POSITIVE / 2.0]);
        survives(&[0.1_f64, 1.0 / 3.0, -1e-310]);
        survives(&[0_u8, 1, 255]);
        survives(&[0_u32, 65_536, u32::MAX]);
        survives(&[0_u64, (1 << 53) + 1, u64::MAX]);
        survives::<f64>(&[]);
        assert_eq!(&*u32::array(Cow::Borrowed(&[258])).bytes(), [2, 1, 0, 0]);
    }

    #[test]
    fn arrays_are_of_one_type() {
        let array = f64::array(Cow::Owned(vec![1.0, f64::NAN]));
        assert!(f32::values(&array).is_none() && u64::values(&array).is_none());
        assert!(array.not_finite().unwrap().is_nan());
        assert!(Array::read(Dtype::F16, &[0, 0]).is_none());
    }
}
