//! Signals are images of one column: (channels, 1, 1, length) has the same values in the same order as (channels, 1, length, 1), of which
//! bands of rows can be coded side by side.

use crate::{Error, Result, Sample, Shape};

/// Returns a signal as an image of one column; none of what is an image already.
pub(super) fn column(sample: &Sample<f32>) -> Option<Sample<f32>> {
    is_signal(sample.shape()).then(|| sample.clone().with_shape(turned(sample.shape())))
}

/// Refuses signals.
pub(super) fn check_image(shape: Shape) -> Result<()> {
    if is_signal(shape) {
        let expected = "an image, since only `denoise` takes signals";
        return Err(Error::invalid("sample", expected, format!("a signal of {} values", shape.width)));
    }
    Ok(())
}

fn is_signal(shape: Shape) -> bool {
    shape.depth == 1 && shape.height == 1 && shape.width > 1
}

/// Returns an image of one column as a signal.
pub(super) fn row(column: Sample<f32>) -> Sample<f32> {
    let shape = column.shape();
    column.with_shape(turned(shape))
}

/// Returns whether a shape is that of a signal as an image of one column, or of its patches.
pub(super) fn is_column(shape: Shape) -> bool {
    shape.depth == 1 && shape.width == 1 && shape.height > 1
}

/// Height for width.
pub(super) fn turned(shape: Shape) -> Shape {
    Shape { height: shape.width, width: shape.height, ..shape }
}
