//! The options of the commands that restore images.

use crate::data::Axes;
use clap::Args as ClapArgs;
use ocsc::restore::{Noise, Pattern};
use std::path::PathBuf;

/// What the commands that restore images have in common.
#[derive(ClapArgs)]
pub(crate) struct Restoring {
    /// Images, folders of images, .npy or .npz; for `denoise` also recordings (.wav, .flac) and arrays of signals; a pattern in quotes
    /// such as 'photos/*.jpg'; @list.txt, a text file with one path per line
    #[arg(required = true, value_name = "IMAGES")]
    pub(crate) images: Vec<PathBuf>,
    /// Folder for the results: files of the same names, sizes, depths and colours (arrays become .npy, recordings .wav of 32-bit
    /// floats)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// What the axes of arrays mean: N samples, C channels, H height, W width (T in signals) [default: NHW, HW or W, HWN for .mat]
    #[arg(long, value_name = "AXES")]
    pub(crate) axes: Option<Axes>,
    /// Search folders to any depth
    #[arg(long)]
    pub(crate) recursive: bool,
    /// Start from the filters of this model, instead of the built-in ones
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<PathBuf>,
    /// Do not adapt the filters to each image: faster, and worse
    #[arg(long)]
    pub(crate) no_learn_here: bool,
    /// Clean images to compare the results with: one for one image, or of the same names. The peak of PSNR is white, and of arrays and
    /// recordings the range of the clean one
    #[arg(long, value_name = "CLEAN")]
    pub(crate) reference: Option<PathBuf>,
    /// Which patches are learned from
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Do not restore again what is in the folder already, under the name that it would get. A picture there of another size than the
    /// result would have is refused; whether it was made of the same image, with the same options, is not checked
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// Stop at an image that cannot be read or restored, instead of reporting it and going on without it
    #[arg(long)]
    pub(crate) strict: bool,
    /// End with exit code 0 although images were passed over; without this option it is 3
    #[arg(long, conflicts_with = "strict")]
    pub(crate) skip_bad: bool,
    /// Write a page that shows every image before and after, and the difference
    #[arg(long, value_name = "PAGE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
pub(crate) struct Denoise {
    #[command(flatten)]
    pub(crate) restoring: Restoring,
    /// The standard deviation of the noise: of photos on the scale of 0 to 255, of arrays in their units, of recordings as a share
    /// of full scale [default: estimated for each image]
    #[arg(long, value_parser = deviation, value_name = "SIGMA")]
    pub(crate) sigma: Option<f64>,
    /// What noise: gaussian, or poisson, whose variance grows with the value; poisson:PHOTONS says how many photons make a
    /// photo's white, or 1 in an array [default for PHOTONS: estimated for each image]
    #[arg(long, default_value = "gaussian", value_parser = noise, value_name = "NOISE", conflicts_with = "loss")]
    pub(crate) noise: Noise,
    /// l1 for values that are far off while the others are exact, such as salt and pepper: they are found and filled in
    #[arg(long, default_value = "l2", value_parser = ["l2", "l1"], value_name = "LOSS", conflicts_with = "sigma")]
    pub(crate) loss: String,
}

#[derive(ClapArgs)]
pub(crate) struct Inpaint {
    #[command(flatten)]
    pub(crate) restoring: Restoring,
    /// Which values were observed: an image or array (nonzero = observed) for all images, an array of one mask per image, or a
    /// folder of images named like them
    #[arg(long, value_name = "FILE|FOLDER", required_unless_present = "nan_is_missing")]
    pub(crate) mask: Option<PathBuf>,
    /// Take NaN in arrays and float TIFFs as unobserved
    #[arg(long)]
    pub(crate) nan_is_missing: bool,
}

#[derive(ClapArgs)]
pub(crate) struct Deblur {
    #[command(flatten)]
    pub(crate) restoring: Restoring,
    /// What the images were blurred by: gaussian:PIXELS (a standard deviation), or an image or array of the kernel, of odd sides
    #[arg(long, value_name = "KERNEL")]
    pub(crate) kernel: String,
    /// The standard deviation of the noise: of photos on the scale of 0 to 255, of arrays in their units [default: estimated
    /// for each image]
    #[arg(long, value_parser = deviation, value_name = "SIGMA")]
    pub(crate) sigma: Option<f64>,
}

#[derive(ClapArgs)]
pub(crate) struct Upscale {
    /// How many times as many pixels along each side: 2, 3 or 4
    #[arg(value_name = "FACTOR", value_parser = clap::value_parser!(u8).range(2..=4))]
    pub(crate) factor: u8,
    #[command(flatten)]
    pub(crate) restoring: Restoring,
}

#[derive(ClapArgs)]
pub(crate) struct Demosaic {
    #[command(flatten)]
    pub(crate) restoring: Restoring,
    /// The colours of the first two pixels of the first two rows: RGGB, BGGR, GRBG or GBRG
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) pattern: Pattern,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse().map_err(|error: ocsc::Error| error.to_string())
}

/// gaussian, poisson or poisson:PHOTONS.
fn noise(text: &str) -> Result<Noise, String> {
    match text.split_once(':') {
        None if text == "gaussian" => Ok(Noise::Gaussian),
        None if text == "poisson" => Ok(Noise::Poisson(None)),
        Some(("poisson", photons)) => match photons.parse::<f64>() {
            Ok(photons) if photons > 0.0 && photons.is_finite() => Ok(Noise::Poisson(Some(photons))),
            _ => Err(format!("expected a number of photons above 0, found {photons:?}")),
        },
        _ => Err("expected gaussian, poisson or poisson:PHOTONS".to_owned()),
    }
}

/// A number of at least 0.
fn deviation(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(sigma) if sigma >= 0.0 && sigma.is_finite() => Ok(sigma),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}
