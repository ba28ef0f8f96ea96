//! The samples of a TIFF's pixels: which are channels, and which is an opacity.
//!
//! `ExtraSamples` says of every sample beyond gray or red, green and blue whether it is an opacity, which is dropped, or a
//! band of its own, such as near infrared, which is a channel. Where the tag is missing, a fourth sample beside red, green and
//! blue is taken for an opacity, as most programs that leave it out mean it, and any other number of samples for bands.

use super::DAMAGED;
use anyhow::{Context, Result};
use tiff::decoder::IfdDecoder;
use tiff::tags::{CompressionMethod, PhotometricInterpretation, Tag};

/// What the directory of a page says about its pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bands {
    /// Samples per pixel in the file.
    samples: u16,
    /// Which of them are channels, ascending; none if the pixels are colours of another kind (palettes, inks).
    pub(crate) kept: Option<Vec<u16>>,
    /// Whether there is an opacity.
    pub(crate) alpha: bool,
    /// Whether bands are kept beside red, green and blue, which the decoder leaves out.
    pub(crate) beyond_colours: bool,
    /// Whether the pixels are JPEG images.
    pub(crate) is_jpeg: bool,
    is_gray: bool,
}

impl Bands {
    /// Reads what a directory's tags say.
    pub(crate) fn read(tags: &mut IfdDecoder<'_>) -> Result<Self> {
        let mut number = |tag| tags.find_tag_unsigned::<u16>(tag).context(DAMAGED);
        let samples = number(Tag::SamplesPerPixel)?.unwrap_or(1);
        let compression = number(Tag::Compression)?.map(CompressionMethod::from_u16_exhaustive);
        let kind = number(Tag::PhotometricInterpretation)?.and_then(PhotometricInterpretation::from_u16);
        let extra = tags.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).context(DAMAGED)?.unwrap_or_default();
        let is_jpeg = compression == Some(CompressionMethod::ModernJPEG);
        Ok(Bands { is_jpeg, ..Bands::new(samples, kind, &extra) })
    }

    fn new(samples: u16, kind: Option<PhotometricInterpretation>, extra: &[u16]) -> Self {
        let first_extra = usize::from(samples).saturating_sub(extra.len());
        let is_rgb = kind == Some(PhotometricInterpretation::RGB);
        let is_gray =
            matches!(kind, Some(PhotometricInterpretation::BlackIsZero | PhotometricInterpretation::WhiteIsZero));
        let is_alpha = |i: usize| match i.checked_sub(first_extra) {
            Some(place) => matches!(extra[place], 1 | 2),
            None => is_rgb && i == 3 && first_extra == 4,
        };
        let all = 0..samples;
        let kept = all.clone().filter(|i| !is_alpha(usize::from(*i))).collect::<Vec<u16>>();
        let is_known = (is_gray || is_rgb && samples >= 3) && !kept.is_empty();
        Bands {
            samples,
            alpha: is_known && kept.len() < all.len(),
            beyond_colours: is_rgb && kept.iter().any(|i| *i > 2),
            kept: is_known.then_some(kept),
            is_jpeg: false,
            is_gray,
        }
    }

    /// The channels of a sample.
    pub(crate) fn channels(&self) -> usize {
        match &self.kept {
            Some(kept) => kept.len(),
            None if self.is_gray => 1,
            None => 3,
        }
    }

    /// The samples of a pixel in the file.
    pub(crate) fn samples(&self) -> usize {
        self.samples.into()
    }
}
