//! Conversions to and from arrays of the crate `ndarray`, with the feature of this name.
//!
//! | here | there | axes | copies |
//! |---|---|---|---|
//! | [`Sample`] | [`Sample::view`] | (channel, depth, height, width) | none |
//! | [`Sample`] | `ArrayD::from` | the same | none |
//! | [`Sample::try_from`] | `ArrayD` | (W), (H, W), (D, H, W) or (C, D, H, W) | none if it is in standard order, else one |
//! | [`Dictionary`] | [`Dictionary::view`] | (filter, channel, spatial axes...) | none |
//! | [`Dictionary`] | `ArrayD::from` | the same | one |

use crate::{Dictionary, Error, Real, Result, Sample, Shape};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

impl<T: Real> Sample<T> {
    /// Views the values as an array (channel, depth, height, width); unobserved ones are zeros.
    pub fn view(&self) -> ArrayViewD<'_, T> {
        let Shape { channels, depth, height, width } = self.shape();
        viewed(&[channels, depth, height, width], self.data())
    }
}

impl<T: Real> Dictionary<T> {
    /// Views the filters as an array (filter, channel, spatial axes...), with as many spatial axes as the dictionary's rank.
    pub fn view(&self) -> ArrayViewD<'_, T> {
        let mut axes = vec![self.n_filters(), self.shape().channels];
        axes.extend(self.shape().axes(self.rank()));
        viewed(&axes, self.data())
    }
}

/// Views numbers as an array of these axes.
fn viewed<'a, T>(axes: &[usize], data: &'a [T]) -> ArrayViewD<'a, T> {
    // Cannot fail: samples and dictionaries are checked when they are made.
    ArrayViewD::from_shape(IxDyn(axes), data).expect("as many numbers as the shape says")
}

impl<T: Real> From<Sample<T>> for ArrayD<T> {
    fn from(sample: Sample<T>) -> Self {
        let Shape { channels, depth, height, width } = sample.shape();
        let axes = IxDyn(&[channels, depth, height, width]);
        ArrayD::from_shape_vec(axes, sample.into_data()).expect("as many numbers as the shape says")
    }
}

impl<T: Real> From<&Dictionary<T>> for ArrayD<T> {
    fn from(dictionary: &Dictionary<T>) -> Self {
        dictionary.view().to_owned()
    }
}

impl<T: Real> TryFrom<ArrayD<T>> for Sample<T> {
    type Error = Error;

    /// Takes an array (W), (H, W), (D, H, W) or (C, D, H, W) of finite values.
    fn try_from(array: ArrayD<T>) -> Result<Self> {
        let shape = match *array.shape() {
            [channels, depth, height, width] => Shape { channels, depth, height, width },
            ref axes @ ([_] | [_, _] | [_, _, _]) => Shape::from_axes(1, axes)?,
            ref other => {
                let expected = "an array (W), (H, W), (D, H, W) or (C, D, H, W)";
                return Err(Error::invalid("sample", expected, format!("{} axes", other.len())));
            }
        };
        let data = if array.is_standard_layout() {
            // A slice of a larger array starts somewhere in its memory.
            let (mut data, start) = array.into_raw_vec_and_offset();
            data.drain(..start.unwrap_or(0));
            data.truncate(shape.len());
            data
        } else {
            array.iter().copied().collect()
        };
        Sample::new(shape, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Axis, Slice};

    fn number(i: usize) -> f64 {
        (1.7 * i as f64).sin()
    }

    fn sample(shape: Shape) -> Sample<f64> {
        Sample::new(shape, (0..shape.len()).map(number).collect()).unwrap()
    }

    #[test]
    fn samples_survive_the_way_there_and_back() {
        for axes in [&[6][..], &[3, 4], &[2, 3, 4]] {
            let shape = Shape::from_axes(3, axes).unwrap();
            let array = ArrayD::from(sample(shape));
            assert_eq!(array, sample(shape).view());
            assert_eq!(array.shape(), [3, shape.depth, shape.height, shape.width]);
            let last_plane = shape.len() - shape.height * shape.width;
            assert_eq!(array[[2, shape.depth - 1, 0, 1]], number(last_plane + 1));
            assert_eq!(Sample::try_from(array).unwrap(), sample(shape));
        }
    }

    #[test]
    fn fewer_axes_are_the_last_ones() {
        let image = ArrayD::from_shape_fn(IxDyn(&[4, 5]), |at| number(5 * at[0] + at[1]));
        assert_eq!(Sample::try_from(image).unwrap(), sample(Shape::image(4, 5)));
        let sound = ArrayD::from_shape_fn(IxDyn(&[9]), |at| number(at[0]));
        assert_eq!(Sample::try_from(sound).unwrap().shape(), Shape::image(1, 9));
        for axes in [&[][..], &[1, 1, 1, 2, 2]] {
            let message = Sample::try_from(ArrayD::<f32>::zeros(IxDyn(axes))).unwrap_err().to_string();
            assert!(message.contains("(H, W)") && message.contains("axes"), "{message}");
        }
        assert!(Sample::try_from(ArrayD::<f32>::zeros(IxDyn(&[0, 3]))).is_err());
        assert!(Sample::try_from(ArrayD::from_elem(IxDyn(&[2, 3]), f32::NAN)).is_err());
    }

    /// Transposed arrays, and those that are a part of a larger one, in memory.
    #[test]
    fn values_count_and_not_their_order_in_memory() {
        let array = ArrayD::from_shape_fn(IxDyn(&[5, 6]), |at| number(10 * at[0] + at[1]));
        let plain = |array: &ArrayD<f64>| array.iter().copied().collect::<Vec<_>>();
        let mut rows = array.clone();
        rows.slice_axis_inplace(Axis(0), Slice::from(1..3));
        let mut columns = array.clone();
        columns.slice_axis_inplace(Axis(1), Slice::from(2..5));
        let mut backwards = array.clone();
        backwards.invert_axis(Axis(0));
        for part in [array.clone().reversed_axes(), rows, columns, backwards] {
            let expected = plain(&part);
            assert_eq!(Sample::try_from(part).unwrap().data(), expected);
        }
    }

    #[test]
    fn dictionaries_are_viewed_with_their_rank() {
        for axes in [&[7][..], &[3, 5], &[2, 3, 4]] {
            let shape = Shape::from_axes(2, axes).unwrap();
            let dictionary = Dictionary::<f32>::random(4, shape, axes.len(), 1).unwrap();
            let view = dictionary.view();
            assert_eq!(view.shape(), [&[4, 2], axes].concat());
            assert!(std::ptr::eq(view.as_ptr(), dictionary.data().as_ptr()));
            assert!(ArrayD::from(&dictionary).iter().eq(dictionary.data()));
        }
    }
}
