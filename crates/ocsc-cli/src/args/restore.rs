//! The options of `denoise` and `inpaint`.

use clap::Args as ClapArgs;
use std::path::PathBuf;

/// What the commands that restore images have in common.
#[derive(ClapArgs)]
pub(crate) struct Restoring {
    /// Images, folders of images, .npy or .npz; a pattern in quotes such as 'photos/*.jpg'; @list.txt, a text file with one
    /// path per line
    #[arg(required = true, value_name = "IMAGES")]
    pub(crate) images: Vec<PathBuf>,
    /// Folder for the results: files of the same names, sizes, depths and colours (arrays become .npy)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Search folders to any depth
    #[arg(long)]
    pub(crate) recursive: bool,
    /// Start from the filters of this model, instead of the built-in ones
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<PathBuf>,
    /// Do not adapt the filters to each image: faster, and worse
    #[arg(long)]
    pub(crate) no_learn_here: bool,
    /// Clean images to compare the results with: one for one image, or of the same names
    #[arg(long, value_name = "CLEAN")]
    pub(crate) reference: Option<PathBuf>,
    /// Which patches are learned from
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Do not restore again what is in the folder already
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
pub(crate) struct Denoise {
    #[command(flatten)]
    pub(crate) restoring: Restoring,
    /// The standard deviation of the noise: of photos on the scale of 0 to 255, of arrays in their units [default: estimated
    /// for each image]
    #[arg(long, value_parser = deviation, value_name = "SIGMA")]
    pub(crate) sigma: Option<f64>,
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

/// A number of at least 0.
fn deviation(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(sigma) if sigma >= 0.0 && sigma.is_finite() => Ok(sigma),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}
