//! What an experiment is: its data, methods, seeds and options, and the numbers that the paper printed; one TOML file each.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// More than any settings take.
const MAX_BYTES: u64 = 1 << 20;

/// The experiments, the paper's first and in its order: (name, settings).
const EMBEDDED: [(&str, &str); 13] = [
    ("fruit", include_str!("../../../../experiments/fruit.toml")),
    ("city", include_str!("../../../../experiments/city.toml")),
    ("house", include_str!("../../../../experiments/house.toml")),
    ("flower", include_str!("../../../../experiments/flower.toml")),
    ("dog", include_str!("../../../../experiments/dog.toml")),
    ("cifar10", include_str!("../../../../experiments/cifar10.toml")),
    ("online", include_str!("../../../../experiments/online.toml")),
    ("synthetic", include_str!("../../../../experiments/synthetic.toml")),
    ("complexity", include_str!("../../../../experiments/complexity.toml")),
    ("convergence", include_str!("../../../../experiments/convergence.toml")),
    ("stream", include_str!("../../../../experiments/stream.toml")),
    ("ablation", include_str!("../../../../experiments/ablation.toml")),
    ("restoring", include_str!("../../../../experiments/restoring.toml")),
];

/// What is varied, and so what is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Methods and seeds: objective and PSNR against time.
    #[default]
    Curves,
    /// The number of training images: PSNR, time and memory against it.
    Growth,
    /// N, K and P, one at a time: exponents of time and memory.
    Complexity,
    /// Solvers of one subproblem on random data: objective against iterations and time.
    Solvers,
    /// Steps of a long run: the projected gradient of the averaged objective against them.
    Convergence,
    /// One method without this and without that: how much each changes the test objective and the time.
    Ablation,
    /// Methods and seeds: photos denoised and filled in with the dictionaries.
    Restoring,
}

/// One experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) title: String,
    /// What it shows, a paragraph.
    pub(crate) about: String,
    pub(crate) kind: Kind,
    /// Names of methods; those that the program does not have are reported so.
    pub(crate) methods: Vec<String>,
    /// How many seeds, from `first_seed` up.
    pub(crate) seeds: u64,
    pub(crate) first_seed: u64,
    /// Options of `ocsc learn`.
    pub(crate) learn: String,
    /// Further options for one method.
    pub(crate) per_method: BTreeMap<String, String>,
    /// What `methods` names that is not a method of the program, but one with other options.
    pub(crate) variants: BTreeMap<String, Variant>,
    /// How options are chosen before the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) search: Option<Search>,
    /// What the dictionaries are used for ([`Kind::Restoring`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restoring: Option<Restoring>,
    /// How many test samples are shown.
    pub(crate) pictures: usize,
    /// Numbers of training images, ascending ([`Kind::Growth`]).
    pub(crate) sizes: Vec<usize>,
    /// The paper's machine ([`Kind::Growth`]).
    pub(crate) memory_limit: Option<String>,
    /// Values of `images`, `filters` and `side`, ascending ([`Kind::Complexity`]); the numbers of iterations, `filters` and
    /// `side` of the random problem ([`Kind::Solvers`]); the `steps` to look at ([`Kind::Convergence`]).
    pub(crate) sweep: BTreeMap<String, Vec<usize>>,
    /// Where the data are, the best first.
    pub(crate) data: Vec<Data>,
    /// What `--small` puts in place of the above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) small: Option<Small>,
    /// What the paper printed.
    pub(crate) printed: Vec<Printed>,
}

/// A method under another name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) method: String,
    /// Options of `ocsc learn` besides.
    pub(crate) options: String,
    /// What `OCSC_SIMD` is set to; empty for the widest vectors that there are.
    pub(crate) simd: String,
}

/// How every method's options are chosen: each of its candidates learns from the training samples without some that are held out,
/// and the lowest objective of these wins. Test samples are not looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Search {
    /// How many seconds of one processor the candidates of a method share, the same for all methods.
    pub(crate) seconds: f64,
    /// The share of the training samples that is held out.
    pub(crate) hold_out: f64,
    /// Options of the candidates' runs, in the place of those of the experiment's.
    pub(crate) learn: String,
    /// The candidates by method: options of `ocsc learn`.
    pub(crate) candidates: BTreeMap<String, Vec<String>>,
}

/// Photos to be restored with learned dictionaries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Restoring {
    /// Files or folders, relative to `--data`.
    pub(crate) photos: Vec<String>,
    /// They are scaled and cut to squares of this side.
    pub(crate) side: usize,
    /// The standard deviation of the noise, on the scale of 0 to 255.
    pub(crate) sigma: f64,
    /// The share of the pixels that is hidden.
    pub(crate) hidden: f64,
}

/// One place where data may be found, relative to `--data`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Data {
    /// What they are, for the report.
    pub(crate) what: String,
    pub(crate) train: Vec<String>,
    pub(crate) test: Vec<String>,
    /// Options of `ocsc learn` that read and split them; `{data}` stands for the folder.
    pub(crate) options: String,
    /// The same, as words that may hold blanks.
    pub(crate) words: Vec<String>,
    /// How to get them.
    pub(crate) get: String,
}

/// A minute's worth of an experiment; what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Small {
    pub(crate) learn: Option<String>,
    pub(crate) per_method: Option<BTreeMap<String, String>>,
    /// Without it, nothing is searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) search: Option<Search>,
    /// Of the photos to restore.
    pub(crate) side: Option<usize>,
    pub(crate) seeds: Option<u64>,
    pub(crate) pictures: Option<usize>,
    pub(crate) sizes: Option<Vec<usize>>,
    pub(crate) sweep: Option<BTreeMap<String, Vec<usize>>>,
}

/// A table or figure of the paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Printed {
    /// Which: `Table 3`.
    pub(crate) place: String,
    /// What it says, in a sentence.
    pub(crate) says: String,
    /// Which table of ours has it beside its numbers: `psnr`, `images` or `cost`.
    pub(crate) table: String,
    /// Its numbers, by method.
    pub(crate) values: BTreeMap<String, String>,
    /// Where ours differ, and why, in a sentence.
    pub(crate) differs: String,
}

impl Settings {
    /// The settings of a paper's experiment, or of the file that takes their place.
    pub(crate) fn load(name: &str, file: Option<&Path>) -> Result<Settings> {
        if let Some(file) = file {
            let text =
                ocsc::file::read_text(file, MAX_BYTES).with_context(|| format!("cannot read {}", file.display()))?;
            return Settings::parse(&text).with_context(|| file.display().to_string());
        }
        let text = EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        Settings::parse(text.with_context(|| format!("expected one of {}, or all, found {name}", names().join(", ")))?)
    }

    pub(crate) fn parse(text: &str) -> Result<Settings> {
        let settings: Settings = toml::from_str(text).context("expected the settings of an experiment (TOML)")?;
        ensure!(!settings.methods.is_empty(), "methods: expected at least one");
        ensure!(settings.seeds > 0, "seeds: expected at least 1");
        let growing = |values: &[usize]| values.iter().all(|v| *v > 0) && values.is_sorted();
        let lists = settings.sweep.values().chain([&settings.sizes]);
        ensure!(lists.into_iter().all(|l| growing(l)), "sizes, sweep: expected whole numbers from 1 up, ascending");
        if settings.kind == Kind::Restoring {
            let Restoring { photos, side, sigma, hidden } = settings.restoring.clone().unwrap_or_default();
            let is_complete = !photos.is_empty() && side > 0 && sigma > 0.0 && hidden > 0.0 && hidden < 1.0;
            ensure!(is_complete, "restoring: expected photos, side and sigma above 0, and hidden between 0 and 1");
        }
        if let Some(search) = &settings.search {
            search.check(&settings.methods).context("search")?;
        }
        Ok(settings)
    }

    /// With `small` in place.
    pub(crate) fn made_small(mut self) -> Settings {
        let Some(small) = self.small.take() else { return self };
        self.title = format!("{} (small)", self.title);
        self.learn = small.learn.unwrap_or(self.learn);
        self.per_method = small.per_method.unwrap_or(self.per_method);
        self.search = small.search;
        if let (Some(restoring), Some(side)) = (&mut self.restoring, small.side) {
            restoring.side = side;
        }
        self.seeds = small.seeds.unwrap_or(self.seeds);
        self.pictures = small.pictures.unwrap_or(self.pictures);
        self.sizes = small.sizes.unwrap_or(self.sizes);
        self.sweep = small.sweep.unwrap_or(self.sweep);
        self
    }

    /// The first place whose files are all there, alone in `data`, and the folder that they are in; an error says how to get them.
    pub(crate) fn found(mut self, folders: &[PathBuf]) -> Result<(Settings, PathBuf)> {
        if self.data.is_empty() {
            return Ok((self, PathBuf::new()));
        }
        let mut missing = Vec::new();
        for data in &self.data {
            for folder in folders {
                let Some(path) = data.missing(folder).or_else(|| self.missing_photo(folder)) else {
                    self.data = vec![data.clone()];
                    return Ok((self, folder.clone()));
                };
                missing.push(format!("{} is not there. {}", path.display(), data.get));
            }
        }
        bail!("the data of this experiment are missing (--data names their folder):\n  {}", missing.join("\n  "))
    }

    /// The first of the photos to restore that is not there.
    fn missing_photo(&self, folder: &Path) -> Option<PathBuf> {
        let photos = self.restoring.iter().flat_map(|restoring| &restoring.photos);
        photos.map(|name| folder.join(name)).find(|path| !path.exists())
    }

    /// The method that a name stands for.
    pub(crate) fn method<'a>(&'a self, name: &'a str) -> &'a str {
        self.variants.get(name).map_or(name, |variant| &variant.method)
    }

    /// What the report says before its figures.
    pub(crate) fn notes(&self) -> Vec<String> {
        let data = self.data.first().map(|data| format!("Data: {}.", data.what));
        let options = (!self.learn.is_empty()).then(|| format!("Options of every run: `{}`.", self.learn.trim()));
        let further = self.per_method.iter().map(|(method, options)| format!("{method} `{}`", options.trim()));
        let further: Vec<String> = further.collect();
        let further = (!further.is_empty()).then(|| format!("And of single methods: {}.", further.join("; ")));
        let variant = |(name, variant): (&String, &Variant)| {
            let options = format!("--method {} {}", variant.method, variant.options);
            format!("{name} `{}`", options.trim())
        };
        // A table of theirs says what ablations change.
        let variants = self.variants.iter().filter(|_| self.kind != Kind::Ablation).map(variant);
        let variants: Vec<String> = variants.collect();
        let variants = (!variants.is_empty()).then(|| format!("Options of variants: {}.", variants.join("; ")));
        let about = (!self.about.is_empty()).then(|| self.about.trim().to_owned());
        [about, data, options, further, variants].into_iter().flatten().collect()
    }

    /// What the paper printed beside a table of ours.
    pub(crate) fn printed(&self, table: &str) -> Option<&Printed> {
        self.printed.iter().find(|printed| printed.table == table)
    }

    pub(crate) fn all_seeds(&self) -> impl Iterator<Item = u64> + Clone + use<> {
        (0..self.seeds).map({
            let first = self.first_seed;
            move |i| first + i
        })
    }
}

impl Search {
    fn check(&self, methods: &[String]) -> Result<()> {
        ensure!(self.seconds > 0.0 && self.seconds.is_finite(), "seconds: expected a number above 0");
        ensure!(self.hold_out > 0.0 && self.hold_out < 1.0, "hold_out: expected a number between 0 and 1");
        for (method, options) in &self.candidates {
            ensure!(methods.contains(method), "candidates: expected one of the experiment's methods, found {method}");
            ensure!(!options.is_empty(), "candidates.{method}: expected at least one");
        }
        Ok(())
    }
}

impl Data {
    /// The first file that is not there. Patterns are left for `learn` to find.
    fn missing(&self, folder: &Path) -> Option<PathBuf> {
        let options = self.options.split_whitespace().filter_map(|word| word.strip_prefix("{data}/"));
        let named = self.train.iter().chain(&self.test).map(String::as_str).chain(options);
        named.map(|name| folder.join(name)).find(|path| !path.to_string_lossy().contains('*') && !path.exists())
    }

    /// The words of `ocsc learn` that name them.
    pub(crate) fn words(&self, folder: &Path) -> Vec<String> {
        let path = |name: &String| folder.join(name).display().to_string();
        let mut words: Vec<String> = self.train.iter().map(path).collect();
        words.extend(self.test.iter().flat_map(|name| ["--test".to_owned(), path(name)]));
        let folder = folder.display().to_string();
        words.extend(self.options.split_whitespace().map(|word| word.replace("{data}", &folder)));
        words.extend_from_slice(&self.words);
        words
    }
}

/// The names of the paper's experiments.
pub(crate) fn names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_file_is_complete() {
        for (name, text) in EMBEDDED {
            let settings = Settings::parse(text).unwrap_or_else(|e| panic!("{name}: {e:#}"));
            assert!(!settings.title.is_empty() && !settings.about.is_empty(), "{name}");
            assert!(settings.small.is_some(), "{name}");
            let is_ours = matches!(settings.kind, Kind::Ablation | Kind::Restoring);
            assert_eq!(settings.printed.is_empty(), is_ours, "{name}: what the paper printed");
            for printed in &settings.printed {
                assert!(!printed.place.is_empty() && !printed.says.is_empty(), "{name}");
            }
            assert!(settings.data.iter().all(|data| !data.what.is_empty() && !data.get.is_empty()), "{name}");
            let small = settings.clone().made_small();
            assert!(small.title.ends_with("(small)") && small.small.is_none(), "{name}");
            let written = toml::to_string(&small).unwrap();
            assert_eq!(Settings::parse(&written).unwrap(), small, "{name}");
        }
        let message = format!("{:#}", Settings::load("fruits", None).unwrap_err());
        assert!(message.contains("fruit, city") && message.contains("fruits"), "{message}");
    }

    #[test]
    fn bad_settings_are_named() {
        for (text, part) in [
            ("methods = []\nseeds = 1", "methods"),
            ("methods = ['ocsc']", "seeds"),
            ("methods = ['ocsc']\nseeds = 1\nsizes = [3, 2]", "ascending"),
            ("method = 'ocsc'", "unknown field"),
            ("kind = 'restoring'\nmethods = ['ocsc']\nseeds = 1\n[restoring]\nside = 9", "restoring: expected photos"),
            ("methods = ['ocsc']\nseeds = 1\n[search]\nhold_out = 0.2", "search: seconds"),
            ("methods = ['ocsc']\nseeds = 1\n[search]\nseconds = 1\nhold_out = 1", "search: hold_out"),
            (
                "methods = ['ocsc']\nseeds = 1\n[search]\nseconds = 1\nhold_out = 0.5\n[search.candidates]\nfcsc = ['']",
                "found fcsc",
            ),
            ("kind = 'dance'", "dance"),
        ] {
            let message = format!("{:#}", Settings::parse(text).unwrap_err());
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn data_are_found_where_all_files_are() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.npy"), "").unwrap();
        let place = |train: &str, get: &str| Data { train: vec![train.into()], get: get.into(), ..Data::default() };
        let settings =
            Settings { data: vec![place("a.npy", "Get A."), place("b.npy", "Get B.")], ..Settings::default() };
        let here = folder.path().to_owned();
        let (found, place_of) = settings.clone().found(&["elsewhere".into(), here.clone()]).unwrap();
        assert_eq!((found.data, place_of), (vec![place("b.npy", "Get B.")], here));
        let message = format!("{:#}", settings.found(&["nowhere".into()]).unwrap_err());
        assert!(
            message.contains("nowhere/a.npy") && message.contains("Get A.") && message.contains("Get B."),
            "{message}"
        );
        let split = Data { options: "--split {data}/s.mat".into(), ..place("b.npy", "") };
        assert_eq!(split.missing(folder.path()), Some(folder.path().join("s.mat")));
        assert_eq!(split.words(Path::new("d")), ["d/b.npy", "--split", "d/s.mat"]);
    }
}
