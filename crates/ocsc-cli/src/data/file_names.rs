//! Names for the files that are written, one per sample: short, in the order of the samples, and never twice the same.
//!
//! An image gives its own stem (`cat.jpg` gives `cat`), an array of several samples its stem and a number of fixed
//! width (`train-0003`), an array of one sample just its stem. Where two would be the same, also on file systems that
//! ignore case, the later one gets `-2`, `-3`, ... appended to its stem: `cat` and `cat-2`.

use std::collections::{HashMap, HashSet};

/// What names a run of samples.
pub(crate) struct Wish {
    /// The stem it would like.
    pub(crate) stem: String,
    /// How many samples share it.
    pub(crate) count: usize,
}

/// Grants each wish its stem, or the nearest free one.
pub(crate) fn assign(wishes: &[Wish]) -> Vec<String> {
    let mut taken = Taken::default();
    let mut stems = vec![String::new(); wishes.len()];
    // Numbered stems first: two of them clash only if they are equal, and single ones can then be held against all.
    for numbered in [true, false] {
        for (wish, stem) in wishes.iter().zip(&mut stems).filter(|(w, _)| (w.count > 1) == numbered) {
            *stem = taken.grant(wish);
        }
    }
    stems
}

/// The name of sample `index` of `count` that share a stem.
pub(crate) fn numbered(stem: &str, index: usize, count: usize) -> String {
    if count == 1 {
        return stem.to_owned();
    }
    format!("{stem}-{index:0width$}", width = width(count))
}

/// At least four digits, so that arrays of a few samples and of thousands look alike.
fn width(count: usize) -> usize {
    count.saturating_sub(1).to_string().len().max(4)
}

/// Everything handed out so far, in lower case.
#[derive(Default)]
struct Taken {
    single: HashSet<String>,
    numbered: HashMap<String, usize>,
    /// The last suffix tried for a stem, so that a thousand equal stems do not take a million trials.
    last: HashMap<String, usize>,
}

impl Taken {
    fn grant(&mut self, wish: &Wish) -> String {
        let mut stem = wish.stem.clone();
        while !self.free(&stem.to_lowercase(), wish.count) {
            let last = self.last.entry(wish.stem.to_lowercase()).or_insert(1);
            *last += 1;
            stem = format!("{}-{last}", wish.stem);
        }
        if wish.count > 1 {
            self.numbered.insert(stem.to_lowercase(), wish.count);
        } else {
            self.single.insert(stem.to_lowercase());
        }
        stem
    }

    fn free(&self, stem: &str, count: usize) -> bool {
        if count > 1 {
            return !self.numbered.contains_key(stem);
        }
        let as_number = stem.rsplit_once('-').is_some_and(|(front, number)| {
            let several = self.numbered.get(front);
            several.is_some_and(|&n| number.len() == width(n) && number.parse().is_ok_and(|i: usize| i < n))
        });
        !as_number && !self.single.contains(stem)
    }
}

/// Replaces what does not belong in a file name; the names within archives are anyone's text.
pub(crate) fn clean(name: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    name.chars().take(64).map(kept).collect()
}
