//! The channels of a sample as slices of one channel, and back: another shape for the same numbers.

use crate::{Error, Real, Result, Sample, Shape};

/// Returns an image of C channels as C slices, (C, 1, H, W) as (1, C, H, W), and a signal as C rows, (C, 1, 1, W) as (1, 1, C, W).
pub(super) fn apart<T: Real>(sample: Sample<T>) -> Result<Sample<T>> {
    let from = sample.shape();
    if from.depth > 1 {
        let expected = "images or signals, whose channels can become slices";
        return Err(Error::invalid("the step `per-channel`", expected, format!("a volume of {from}")));
    }
    Ok(sample.with_shape(apart_shape(from)))
}

/// The shape that [`apart`] gives.
pub(super) fn apart_shape(from: Shape) -> Shape {
    match from.height {
        1 => Shape { channels: 1, height: from.channels, ..from },
        _ => Shape { channels: 1, depth: from.channels, ..from },
    }
}

/// Undoes [`apart`], for samples of so many axes.
pub(super) fn together<T: Real>(sample: Sample<T>, rank: usize) -> Sample<T> {
    let from = sample.shape();
    let to = match rank {
        1 => Shape { channels: from.height, height: 1, ..from },
        _ => Shape { channels: from.depth, depth: 1, ..from },
    };
    sample.with_shape(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_become_slices_and_come_back() {
        let numbers = |n: usize| (0..n).map(|i| i as f64).collect::<Vec<f64>>();
        for (shape, rank, expected) in [
            (Shape { channels: 3, depth: 1, height: 2, width: 4 }, 2, [3, 2, 4]),
            (Shape { channels: 1, depth: 1, height: 2, width: 4 }, 2, [1, 2, 4]),
            (Shape { channels: 5, depth: 1, height: 1, width: 4 }, 1, [1, 5, 4]),
            (Shape { channels: 1, depth: 1, height: 1, width: 4 }, 1, [1, 1, 4]),
        ] {
            let sample = Sample::new(shape, numbers(shape.len())).unwrap();
            let slices = apart(sample.clone()).unwrap();
            assert_eq!((slices.shape().channels, slices.shape().spatial()), (1, expected));
            assert_eq!(together(slices, rank), sample);
        }
        let volume = Shape { channels: 2, depth: 2, height: 2, width: 2 };
        let error = apart(Sample::new(volume, numbers(16)).unwrap()).unwrap_err().to_string();
        assert!(
            error.contains("expected images or signals") && error.contains("a volume of 2 channels of 2x2x2"),
            "{error}"
        );
    }
}
