//! Folders of images or of recordings: which files count, and in which order.

use super::{audio, image};
use anyhow::{Result, bail};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// The images, or else the recordings, directly in `folder`, in natural order: `2.png` comes before `10.png`.
///
/// Hidden files, subfolders and files of other kinds are passed over.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (images, recordings) = (list(folder, image::is_image)?, list(folder, audio::is_audio)?);
    match (images.first(), recordings.first()) {
        (Some(image), Some(recording)) => bail!(
            "both images and recordings, such as {} and {}; expected one kind: move the others to a folder of their own",
            image.display(),
            recording.display()
        ),
        (None, None) => bail!(
            "no images in this folder, and no recordings; expected files ending in {}",
            [image::EXTENSIONS, audio::EXTENSIONS].concat().join(", ")
        ),
        (Some(_), None) => Ok(images),
        (None, Some(_)) => Ok(recordings),
    }
}

fn list(folder: &Path, wanted: fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') && wanted(&path) && path.is_file() {
            found.push((name, path));
        }
    }
    found.sort_by(|a, b| natural(&a.0, &b.0).then_with(|| a.1.cmp(&b.1)));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Compares names with runs of digits taken as numbers, and letters without regard to case.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (run_a, run_b) = (leading_digits(a), leading_digits(b));
        if !run_a.is_empty() && !run_b.is_empty() {
            // Without leading zeros the longer number is the larger, however many digits it has.
            let (x, y) = (run_a.trim_start_matches('0'), run_b.trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| run_a.len().cmp(&run_b.len()));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (&a[run_a.len()..], &b[run_b.len()..]);
            continue;
        }
        let (mut rest_a, mut rest_b) = (a.chars(), b.chars());
        match (rest_a.next(), rest_b.next()) {
            (Some(x), Some(y)) => {
                let order = x.to_lowercase().cmp(y.to_lowercase());
                if order != Ordering::Equal {
                    return order;
                }
            }
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
        (a, b) = (rest_a.as_str(), rest_b.as_str());
    }
}

fn leading_digits(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len()]
}
