//! The command line: every command, option, default and help text.

mod live;
mod restore;
mod settings;
mod value;

use crate::console::Console;
use crate::data::raw::Pixels;
use crate::data::{Axes, Channel, Resize, SourceOptions, Window};
use crate::memory::Limit;
use anyhow::Result;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use ocsc::events::Align;
use ocsc::preprocess::Preprocess;
use std::path::PathBuf;
use value::{FrameSize, at_least_one, at_least_zero, fraction, hertz, positive, threads};

pub(crate) use live::{LiveArgs, View};
pub(crate) use restore::{Deblur, Demosaic, Denoise, Inpaint, Restoring, Upscale};
pub(crate) use settings::{CodeArgs, ModelArgs, PAPER};
pub(crate) use value::{Every, Size, Tile, memory as memory_size};

/// Online convolutional sparse coding: learn small filters from a stream of images, and represent new images as sums of
/// those filters convolved with sparse maps, each with a proven bound on how far it is from optimal.
#[derive(Parser)]
#[command(
    name = "ocsc",
    version,
    after_help = "Start here:\n  ocsc demo                                         learn from built-in images, write a report\n  ocsc learn photos/ --out model.safetensors        learn from your own\n  ocsc code model.safetensors new/ --out codes/     code new images\n\nEvery command has examples: ocsc help learn\n\nExit codes: 0 done, 1 failed, 2 bad usage, 3 done, but samples were passed over (0 with --skip-bad), 130 interrupted"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The options of every command.
#[derive(ClapArgs)]
pub struct Common {
    /// Threads to compute with [default: all cores]
    #[arg(long, global = true, value_parser = threads, value_name = "N")]
    pub threads: Option<usize>,
    /// Print no progress and no messages but errors; results are printed all the same
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

impl Common {
    /// Makes the threads; to be called once, before anything is computed.
    pub fn set_threads(&self, console: &Console) -> Result<()> {
        crate::threads::start(self.threads, console)
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Learn from built-in images, evaluate on held-out ones, write a report with pictures
    #[command(after_help = "Examples:\n  ocsc demo --out report/\n  ocsc demo --live    (watch it learn in a browser)")]
    Demo(Demo),
    /// Learn a dictionary
    #[command(
        after_help = "Examples:\n  ocsc learn photos/ --out model.safetensors\n  ocsc learn train.npy --test test.npy --passes 3 --log run.jsonl --out model.safetensors\n  ocsc learn train.npy --filters 64 --size 8 --beta-ratio 0.1 --out model.safetensors\n  ocsc learn photos/ --recursive --resize 256 --crop 128 --test-fraction 0.2 --passes 5 --out model.safetensors\n  ocsc learn jpg/ --resize 500 --crop 500 --split setid.mat --out model.safetensors    (Oxford Flowers as in the paper)\n  ocsc learn Images/ --recursive --resize 224 --crop 224 --test-list test_list.mat --out model.safetensors    (Stanford Dogs)\n  ocsc learn train.npy --resume model.safetensors\n  ocsc learn photos/ --passes 5 --out model.safetensors --live    (watch it learn in a browser)\n  ocsc learn train.npy --init D.npy --passes 0 --out model.safetensors    (wrap a dictionary from elsewhere)\n  ocsc learn songs/ --size 512 --rate 16000 --beta-ratio 0.1 --out model.safetensors\n  ffmpeg -i film.mp4 -f rawvideo -pix_fmt gray - | ocsc learn - --raw 480x640 --out model.safetensors\n\nThe method ocsc takes samples of any sizes; ocsc-paper (Algorithm 3 of Wang, Yao, Kwok, Ni 2018) needs one size."
    )]
    Learn(Box<Learn>),
    /// Code new data: one .npz per sample with its non-zeros
    #[command(
        after_help = "Examples:\n  ocsc code model.safetensors photos/ --out codes/\n  ocsc code model.safetensors test.npy --tol 1e-4 --out codes/\n  ffmpeg -i film.mp4 -f rawvideo -pix_fmt gray - | ocsc code model.safetensors - --raw 480x640 --out codes/\n\nEach file holds `filter` (n), `position` (n x axes), `value` (n), `shape` (filters, axes...), and the scalars `objective`, `gap` (relative duality gap) and `beta`; also what it was made of and with: `sample_shape`, `source`, `preprocess`, `masked`, `boundary` and `model` (the dictionary's checksum); with models of the method scsc, `base` and `mixing` say how the sample's own filters are made of the model's. In Python: numpy.load('codes/cat.npz')['value']"
    )]
    Code(Code),
    /// Code new data, or read their codes, and list when and where each filter fires
    #[command(
        after_help = "Examples:\n  ocsc events model.safetensors songs/ --out events.csv\n  ocsc events model.safetensors ecg.npy --axes T --window 10s --sfreq 360 --threshold 0.5 --out beats.csv\n  ocsc events model.safetensors cells.tif --min-distance 7x7 --align centre --out cells.csv\n  ocsc events model.safetensors codes/ --threshold 0.5 --out events.csv    (codes that `ocsc code` wrote: not coded again)\n\nThe columns are sample,filter,time,position,amplitude,energy; beyond signals z,y,x instead of position, with z = 0 for images. `sample` is the file, with its number where a file holds several; windows of one recording are one sample, and an event that both sides of a cut show is one. `time` is in seconds, and empty where no rate is known. `amplitude` is the coefficient of the event's strongest atom. `energy` is a share: the energy of the event's own reconstruction, of its atoms alone, over the energy of the sample (of the whole recording) after preprocessing. Positions count values after --rate and --resize, from 0 up, within the whole sample also with --crop; with the boundaries zero and free they may lie outside of it."
    )]
    Events(Events),
    /// Turn codes back into images
    #[command(
        after_help = "Examples:\n  ocsc reconstruct model.safetensors codes/ --out images/\n  ocsc reconstruct model.safetensors codes/ --out images/ --original photos/\n  ocsc reconstruct model.safetensors codes/ --out sources/ --each-filter    (what each filter stands for)\n  ocsc reconstruct model.safetensors codes/ --out stacks/ --original cells.tif --format tiff    (pages and depth of the original)\n  ocsc reconstruct model.safetensors codes/ --out film.y4m --original frames/ --raw\n\nCodes describe samples after preprocessing. What it took out (mean, smooth part, contrast) is not in them, so it is taken from the originals, which are found by the paths that the codes recorded: name the data as for `ocsc code`."
    )]
    Reconstruct(Reconstruct),
    /// Objective, duality gap, PSNR and non-zeros on a set of samples
    #[command(
        after_help = "Examples:\n  ocsc evaluate model.safetensors test/\n  ocsc evaluate model.safetensors test.npy --tol 1e-4 --json\n  ocsc evaluate model.safetensors photos/ --test-fraction 0.2 --csv photos.csv\n  ocsc evaluate model.safetensors noisy/ --reference clean/ --beta 0.3"
    )]
    Evaluate(Evaluate),
    /// Take noise out of images and recordings
    #[command(
        after_help = "Examples:\n  ocsc denoise photos/ --out clean/\n  ocsc denoise noisy.png --sigma 25 --out clean/\n  ocsc denoise noisy/ --sigma 25 --reference originals/ --json --out clean/\n  ocsc denoise voice.wav --out clean/\n\nThe filters are adapted to each image, then each patch is coded together with the patches most like it, as far as its noise allows. Photos are written with the same name, size, depth and colour profile; JPEG with quality 95. Opacity and notes of the camera (EXIF) are not; a line says so."
    )]
    Denoise(Denoise),
    /// Fill in what was not observed
    #[command(
        after_help = "Examples:\n  ocsc inpaint photo.png --mask mask.png --out filled/\n  ocsc inpaint photos/ --mask masks/ --out filled/\n  ocsc inpaint gaps.npy --nan-is-missing --out filled/\n\nObserved values are kept. From a smooth guess, each patch is coded together with the patches most like it, ever closer."
    )]
    Inpaint(Inpaint),
    /// Take a known blur out of images
    #[command(
        after_help = "Examples:\n  ocsc deblur photos/ --kernel gaussian:1.6 --out sharp/\n  ocsc deblur moved.png --kernel path.png --sigma 2 --out sharp/\n\nThe kernel is scaled to sum 1; images are taken to go on at their border as they end. Frequencies that the blur took away wholly are guessed from patches alike."
    )]
    Deblur(Deblur),
    /// Make images 2, 3 or 4 times as large along each side
    #[command(
        after_help = "Examples:\n  ocsc upscale 2 photos/ --out large/\n  ocsc upscale 3 small.png --reference original.png --out large/\n\nThe result gives the image back when it is made smaller by cubic interpolation, as most programs do it."
    )]
    Upscale(Upscale),
    /// Make colour images of the mosaics that cameras' sensors see
    #[command(
        after_help = "Examples:\n  ocsc demosaic raw.png --pattern RGGB --out colour/\n  ocsc demosaic mosaics.npy --pattern GBRG --out colour/\n\nMosaics are gray images, one colour at every pixel. Observed values are kept."
    )]
    Demosaic(Demosaic),
    /// Choose beta, and the number and size of filters, by predicting hidden values
    #[command(
        after_help = "Examples:\n  ocsc tune photos/ --out tune.png\n  ocsc tune photos/ --try-filters 25,50,100 --try-size 7,11\n  ocsc tune signals.npy --model model.safetensors --json\n\nA few values of every sample are hidden, the others are coded along a path of betas, and the hidden ones are compared with the reconstruction. Recommended is the largest beta whose error cannot be told from the smallest (within one standard error over samples). The filters are learned from what is not hidden, briefly and at one ratio, unless --model has them: so the recommended beta is one to code with. With --relearn they are learned at every ratio, and it suits both. Large samples are cut to pieces. Samples are preprocessed before values are hidden, since steps such as lcn, lowpass and whiten mix values:\nwith such steps, neighbours know a little of what is hidden, alike for all betas."
    )]
    Tune(Box<Tune>),
    /// Draw the dictionary, filters in ascending order of variance
    #[command(
        after_help = "Examples:\n  ocsc show model.safetensors --out dictionary.png\n  ocsc show model.safetensors --numbers --out dictionary.png    (which is filter 3 of events.csv?)"
    )]
    Show(Show),
    /// Say what is in a model file
    #[command(after_help = "Examples:\n  ocsc info model.safetensors\n  ocsc info model.safetensors --json")]
    Info(Info),
    /// Recompute what codes are worth, or check that a model file is whole
    #[command(
        after_help = "Examples:\n  ocsc verify model.safetensors photos/ codes/\n  ocsc verify model.safetensors test.npy codes/ --json\n  ocsc verify model.safetensors\n\nObjective and duality gap of every code are recomputed in f64 from their definitions, by code that shares nothing with the coders, and compared with what its file says. Without data and codes: whether the model's checksum holds, its filters have norms of at most 1, and the statistics of a checkpoint are possible. Exit code 1 if anything fails."
    )]
    Verify(Verify),
    /// Compare methods on your own data, and write a report
    #[command(
        after_help = "Examples:\n  ocsc compare photos/ --methods ocsc,ocsc-paper --test-fraction 0.2 --resize 128x128 --passes 3 --out compared/\n  ocsc compare train.npy --test test.npy --methods ocsc,ocsc-paper --seeds 5 --out compared/\n\nAll other options are those of `ocsc learn`, and go to every run. A run that is finished is kept: the same command goes on where an interrupted one ended."
    )]
    Compare(Box<Compare>),
    /// Run the experiments of the paper again, and write a report
    #[command(
        after_help = "Examples:\n  ocsc reproduce fruit --data ../shared/data\n  ocsc reproduce all --small\n  ocsc reproduce house --data pictures/        (with house/train and house/test in it)\n  ocsc reproduce all --estimate                (how long will it take?)\n  ocsc reproduce cifar10 --data cifar/ --data ../shared/data\n  ocsc reproduce all --results experiments/RESULTS.md\n\nA run that is finished is kept, and one that was cut short goes on from its last checkpoint: the same command goes on where an interrupted one ended."
    )]
    Reproduce(Reproduce),
    /// Look at a run's log, a model or codes in a browser, without learning
    #[command(
        after_help = "Examples:\n  ocsc view run.jsonl model.safetensors\n  ocsc view model.safetensors codes/\n  ocsc view run.jsonl model.safetensors --out page.html    (a file instead of a server)\n\nThe page is served on 127.0.0.1 until Ctrl-C. It is the one that `ocsc learn --live` serves while it learns."
    )]
    View(View),
    /// One page of many runs: curves, tables, dictionaries, reconstructions
    #[command(
        after_help = "Examples:\n  ocsc report a.jsonl b.jsonl --out report.html\n  ocsc report reproduction/runs --out report.html\n\nLogs named NAME-seed0.jsonl, NAME-seed1.jsonl ... are runs of one NAME, and shown as their mean and deviation."
    )]
    Report(Summarise),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  ocsc completions bash > /etc/bash_completion.d/ocsc")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    #[command(after_help = "Example:\n  ocsc man --out ~/.local/share/man/man1    (then: man ocsc-learn)")]
    Man {
        /// Folder for the pages
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(ClapArgs)]
pub(crate) struct Demo {
    /// Folder for report.html, dictionary.png, model.safetensors and run.jsonl
    #[arg(long, default_value = "ocsc-demo", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Number of filters
    #[arg(long, default_value_t = 100, value_parser = at_least_one, value_name = "K")]
    pub(crate) filters: usize,
    /// Passes over the 24 images
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) passes: usize,
    /// Seeds the images, the initial dictionary and the visiting order
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
}

/// Which samples.
#[derive(ClapArgs)]
pub(crate) struct DataArgs {
    /// Images, recordings (.wav, .flac), folders of either, .npy, .npz or .mat (`file.npz:NAME` picks one array of
    /// several), CIFAR .bin; a pattern in quotes such as 'photos/**/*.jpg'; @list.txt, a text file with one path per line,
    /// relative to it; or - for raw frames from standard input (see --raw)
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Pass over samples that are smaller than the filters as if they were not there; without this option they are reported as those
    /// that cannot be read
    #[arg(long)]
    pub(crate) skip_small: bool,
    /// Take only the first N samples
    #[arg(long, value_parser = at_least_one, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Take only N samples (of those that --limit leaves), drawn at random by the seed
    #[arg(long, value_parser = at_least_one, value_name = "N")]
    pub(crate) subset: Option<usize>,
    /// Stop at a sample that cannot be read or is smaller than the filters, instead of reporting it and going on without it
    #[arg(long)]
    pub(crate) strict: bool,
    /// End with exit code 0 although samples were passed over; without this option it is 3
    #[arg(long, conflicts_with = "strict")]
    pub(crate) skip_bad: bool,
    /// The size of raw frames from standard input: height x width, e.g. 480x640
    #[arg(long, value_name = "HxW")]
    pub(crate) raw: Option<FrameSize>,
    /// How raw frames are written: ffmpeg's -pix_fmt
    #[arg(long, value_enum, default_value = "gray", value_name = "FORMAT")]
    pub(crate) raw_format: Pixels,
}

impl DataArgs {
    /// Returns the flag of an option that says how samples are read or which, if one was given.
    pub(crate) fn given(&self) -> Option<String> {
        let reading = &self.reading;
        let given = [
            ("recursive", reading.recursive),
            ("axes", reading.axes.is_some()),
            ("resize", reading.resize.is_some()),
            ("crop", reading.crop.is_some()),
            ("window", reading.window.is_some()),
            ("channel", reading.channel != Channel::Mean),
            ("rate", reading.rate.is_some()),
            ("mask", reading.mask.is_some()),
            ("data-weights", reading.data_weights.is_some()),
            ("coefficient-weights", reading.coefficient_weights.is_some()),
            ("nan-is-missing", reading.nan_is_missing),
            ("skip-small", self.skip_small),
            ("limit", self.limit.is_some()),
            ("subset", self.subset.is_some()),
            ("strict", self.strict),
            ("skip-bad", self.skip_bad),
            ("raw", self.raw.is_some()),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(name, _)| format!("--{name}"))
    }
}

/// How samples are read, and what of them.
#[derive(ClapArgs)]
pub(crate) struct Reading {
    /// Search folders to any depth
    #[arg(long)]
    pub(crate) recursive: bool,
    /// What the axes of arrays mean: N samples, C channels, D depth, H height, W width; T, time, is the W of signals, and the D of
    /// video where there is a W too
    /// [default: as the model was learned; else NHW, HW or W, HWN for .mat]. The pages of a TIFF file are its N, or with a D
    /// the slices of one volume, or with a C and no N the channels of one image
    #[arg(long)]
    pub(crate) axes: Option<Axes>,
    /// Scale images: 256 (the shortest side, the aspect is kept) or 480x640 (height x width); in single precision
    #[arg(long, value_name = "SIZE")]
    pub(crate) resize: Option<Resize>,
    /// Then cut out a piece: 256 (on every axis), 480x640, 16x64x64. In learning from another place in every pass,
    /// which the seed decides; in testing, coding and evaluating always from the middle
    #[arg(long, value_name = "SIZE")]
    pub(crate) crop: Option<Size>,
    /// Cut signals into windows, in seconds (5s) or values (2048); a rest shorter than half a window goes with the last
    /// [default: 5s for recordings, none for arrays]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) window: Option<Window>,
    /// Channels of recordings: their mean, one of them (from 1), or all
    #[arg(long, default_value = "mean", value_name = "mean|N|all")]
    pub(crate) channel: Channel,
    /// Resample recordings to this rate [default: as the model was learned; else as they are]
    #[arg(long, value_parser = hertz, value_name = "HZ")]
    pub(crate) rate: Option<u32>,
    /// Values per second along W of signals, or frames per second along D of video, in arrays, which do not say so themselves: for
    /// --window in seconds, and the times of events
    #[arg(long, value_parser = positive, value_name = "HZ")]
    pub(crate) sfreq: Option<f64>,
    /// Which values were observed: an image or array (nonzero = observed) for all samples, an array of one mask per
    /// sample, or a folder of images named like the samples'
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) mask: Option<PathBuf>,
    /// How much values count, from 0 (unobserved) to 1: an image or array for all samples, an array of one per sample, or a
    /// folder of images named like the samples'
    #[arg(long, value_name = "FILE|FOLDER", conflicts_with = "mask")]
    pub(crate) data_weights: Option<PathBuf>,
    /// Weights of the coefficients in the penalty: an array of the code's shape (filters, positions...) for all samples, above 0,
    /// where inf keeps a coefficient at zero (method ocsc)
    #[arg(long, value_name = "FILE")]
    pub(crate) coefficient_weights: Option<PathBuf>,
    /// Take NaN in arrays and float TIFFs as unobserved
    #[arg(long)]
    pub(crate) nan_is_missing: bool,
}

impl Reading {
    /// How to read them; `seed` decides where pieces for learning are cut.
    pub(crate) fn options(&self, seed: u64) -> SourceOptions {
        SourceOptions {
            axes: self.axes.clone(),
            axes_are_recorded: false,
            recursive: self.recursive,
            resize: self.resize,
            crop: self.crop.as_ref().map(|size| size.lengths().to_vec()),
            seed,
            channel: self.channel,
            rate: self.rate,
            rate_is_recorded: false,
            sfreq: self.sfreq,
            window: self.window,
            whole_recordings: false,
            mask: self.mask.clone().or(self.data_weights.clone()),
            mask_is_weights: self.data_weights.is_some(),
            coefficient_weights: self.coefficient_weights.clone(),
            nan_is_missing: self.nan_is_missing,
            is_mask: false,
            limit: Limit::default(),
        }
    }
}

/// The options of `learn`.
#[derive(ClapArgs)]
pub struct Learn {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Learn from pieces of this size, 64 (on every axis), 64x64, 8x64x64, in every pass as many of each sample as would cover it, from
    /// other places: for few and large samples, each of which would be one update. `whole` learns from samples as they are, as
    /// Python's `fit` always does [default: of fewer than 50 samples as many pieces as make 50, if that leaves them 8 filter lengths,
    /// and 64 in signals and images; whole with --preset paper, --crop, --window, --coefficient-weights
    /// and methods that keep their samples; with --resume as recorded]
    #[arg(long, value_name = "SIZE|whole", conflicts_with = "crop")]
    pub(crate) tile: Option<Tile>,
    /// With --crop: pieces of each sample in a pass [default: 1]
    #[arg(long, requires = "crop", value_parser = at_least_one, value_name = "N")]
    pub(crate) crops_per_sample: Option<usize>,
    /// The model file to write (with --resume: the checkpoint, unless given)
    #[arg(long, required_unless_present = "resume", value_name = "MODEL")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the model file also if it is the checkpoint of an unfinished run
    #[arg(long)]
    pub(crate) force: bool,
    /// Go on from a checkpoint, with its settings, which are not named again; --passes may raise the number of passes. Name the same
    /// data again, with the options that say how they are read and which samples are held out
    #[arg(long, value_name = "MODEL")]
    pub(crate) resume: Option<PathBuf>,
    /// With --resume: go on although names, sizes, order or reading options of the data are not those that the checkpoint
    /// recorded; a pass that other samples interrupt is begun anew
    #[arg(long, requires = "resume")]
    pub(crate) other_data: bool,
    #[command(flatten)]
    pub(crate) test: TestArgs,
    /// The seed of --test-fraction, so that runs with other seeds test on the same samples [default: --seed]
    #[arg(long, requires = "test_fraction", value_name = "SEED")]
    pub(crate) split_seed: Option<u64>,
    /// Evaluate on the test data every N samples, and at the end
    #[arg(long, requires = "tests", value_parser = at_least_one, value_name = "N")]
    pub(crate) test_every: Option<usize>,
    /// Evaluate on the test data whenever so many seconds of learning time have passed (unless the dictionary is still the same),
    /// and at the end: one grid of time for methods whose passes take long and those whose passes do not
    #[arg(long, requires = "tests", value_parser = positive, value_name = "SECONDS")]
    pub(crate) test_seconds: Option<f64>,
    /// Count --time-limit and --test-seconds in processor time, so that other work of the machine takes nothing off them
    #[arg(long)]
    pub(crate) processor_time: bool,
    /// Evaluate on only N of the test data, drawn at random and the same for all seeds, and on all of them at the end
    #[arg(long, requires = "tests", value_parser = at_least_one, value_name = "N")]
    pub(crate) test_subset: Option<usize>,
    /// Write a checkpoint to the model file every N samples or so many minutes (30min), and at the end; without this
    /// option every 10 minutes, and none at the end
    #[arg(long, value_name = "N|MINUTES")]
    pub(crate) checkpoint_every: Option<Every>,
    /// Write the names of the samples that are held out, one per line, as --test-list reads them
    #[arg(long, requires = "tests", conflicts_with = "test", value_name = "FILE.txt")]
    pub(crate) write_split: Option<PathBuf>,
    /// Write a log, one JSON object per line
    #[arg(long, value_name = "RUN.jsonl")]
    pub(crate) log: Option<PathBuf>,
    /// Write a page at the end: figures, the dictionary, curves, held-out samples beside what their codes give back, data and settings
    #[arg(long, value_name = "PAGE.html")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// What to test on: other data, or samples of DATA that are held out.
#[derive(ClapArgs)]
#[group(id = "tests", multiple = false)]
pub(crate) struct TestArgs {
    /// Data to evaluate on, after each pass or as --test-every says; not charged to the learning time
    #[arg(long, value_name = "DATA")]
    pub(crate) test: Vec<PathBuf>,
    /// Hold this fraction of DATA out and evaluate on it; the seed decides which samples. --limit and --subset choose among
    /// the rest, here and below
    #[arg(long, value_parser = fraction, value_name = "FRACTION")]
    pub(crate) test_fraction: Option<f64>,
    /// Hold out the samples named in a text file, one per line: as DATA names them, relative to the list, or by the end of
    /// their path (or in the cells of `file_list` in a .mat file, as of Stanford Dogs)
    #[arg(long, value_name = "FILE")]
    pub(crate) test_list: Option<PathBuf>,
    /// Split as setid.mat of Oxford Flowers says, and as the paper does: learn from `trnid` and `valid`, test on `tstid`
    #[arg(long, value_name = "FILE.mat")]
    pub(crate) split: Option<PathBuf>,
}

/// The options of `code`.
#[derive(ClapArgs)]
pub struct Code {
    /// The model file
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Folder for the codes; made if absent
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Leave out the samples whose codes are in the folder already, as an interrupted call left them. A code there of another sample
    /// or another piece of it, or that another model made, or another beta, preprocessing, boundary or use of a mask, is refused
    #[arg(long)]
    pub(crate) skip_existing: bool,
    #[command(flatten)]
    pub(crate) coding: Coding,
}

/// The options of `events`.
#[derive(ClapArgs)]
pub(crate) struct Events {
    /// The model file
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The table to write
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) out: PathBuf,
    /// Leave out events of an amplitude below this, in magnitude
    #[arg(long, default_value_t = 0.0, value_parser = at_least_zero, value_name = "AMPLITUDE")]
    pub(crate) threshold: f64,
    /// Merge atoms of one filter that are nearer to a stronger one than this on every axis: 20, 7x7, 3x7x7; 1 merges none
    /// [default: half a filter, rounded up]
    #[arg(long, value_name = "SIZE")]
    pub(crate) min_distance: Option<Size>,
    /// Which place of the filter positions are: its first corner (start), its largest magnitude (peak) or its centre of energy
    /// (centre)
    #[arg(long, default_value_t, value_name = "start|peak|centre")]
    pub(crate) align: Align,
    #[command(flatten)]
    pub(crate) coding: Coding,
}

/// How new data are coded.
#[derive(ClapArgs)]
pub(crate) struct Coding {
    #[command(flatten)]
    pub(crate) settings: CodeArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
#[command(mut_group("Reading", |group| group.requires("original")))]
pub(crate) struct Reconstruct {
    /// The model file
    pub(crate) model: PathBuf,
    /// Folder of codes, as written by `ocsc code`
    pub(crate) codes: PathBuf,
    /// Folder for the images; made if absent. With --raw, a file
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Leave out the codes whose images are in the folder already, as an interrupted call left them
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// What to write: exact arrays, pictures stretched to their range (with --original, to that of the original), both, or TIFF
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) format: Format,
    /// Write the frames of all codes, in the order of their names, to one file, --out: raw 8-bit frames (gray or rgb24), or for a
    /// name that ends in .y4m a gray video; 0 is black and 1 white, and with preprocessing --original is needed
    #[arg(long, conflicts_with_all = ["format", "each_filter", "skip_existing"])]
    pub(crate) raw: bool,
    /// Reconstruct what these filters alone stand for, by their numbers from 0: 3,5
    #[arg(long, value_delimiter = ',', value_name = "K,K,...")]
    pub(crate) only: Vec<usize>,
    /// Reconstruct what each filter (of --only) stands for by itself: NAME-filter07.npy and so on, which add up to the whole
    #[arg(long)]
    pub(crate) each_filter: bool,
    /// The data that were coded: reconstructions then come back as before preprocessing
    #[arg(long, num_args = 1.., value_name = "DATA")]
    pub(crate) original: Vec<PathBuf>,
    /// How they were read, as for `ocsc code`
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// The preprocessing that was given to `ocsc code` [default: what the codes recorded, or the model's]
    #[arg(long, requires = "original")]
    pub(crate) preprocess: Option<Preprocess>,
    /// Go on with codes that were made with another dictionary of the same shape, which are refused otherwise
    #[arg(long)]
    pub(crate) any_model: bool,
}

/// The options of `verify`.
#[derive(ClapArgs)]
pub(crate) struct Verify {
    /// The model file
    pub(crate) model: PathBuf,
    /// The data that were coded, named as for `ocsc code`, and last the folder of codes
    #[arg(value_name = "DATA... CODES")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// The preprocessing that was given to `ocsc code` [default: what the codes recorded, or the model's]
    #[arg(long)]
    pub(crate) preprocess: Option<Preprocess>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of `evaluate`.
#[derive(ClapArgs)]
pub struct Evaluate {
    /// The model file
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Evaluate on what `learn` with the same option and seed held out of DATA: this fraction
    #[arg(long, value_parser = fraction, value_name = "FRACTION", conflicts_with_all = ["test_list", "split"])]
    pub(crate) test_fraction: Option<f64>,
    /// The seed of --test-fraction [default: that of the model]
    #[arg(long, requires = "test_fraction", value_name = "SEED")]
    pub(crate) split_seed: Option<u64>,
    /// Evaluate on the samples of DATA that a text file names, one per line, as `learn --test-list` reads and `learn
    /// --write-split` writes it
    #[arg(long, value_name = "FILE", conflicts_with = "split")]
    pub(crate) test_list: Option<PathBuf>,
    /// Evaluate on `tstid` of setid.mat of Oxford Flowers
    #[arg(long, value_name = "FILE.mat")]
    pub(crate) split: Option<PathBuf>,
    /// Compare what comes back with these clean samples instead of DATA, before preprocessing: one for one sample, or of the
    /// same names
    #[arg(long, value_name = "CLEAN")]
    pub(crate) reference: Option<PathBuf>,
    /// Write one row per sample: its name, objective, gap, PSNR and non-zeros
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) coding: Coding,
}

/// The options of `learn`, of which those for a single run are out of place.
#[derive(ClapArgs)]
#[command(
    mut_arg("out", |arg| arg.help("Folder for report.html, its figures, and the runs").value_name("DIR")),
    mut_arg("seed", |arg| arg.help("The first seed; each decides the initial dictionary, the visiting order, --crop and --subset")),
    mut_arg("split_seed", |arg| arg.help("The seed of --test-fraction, one for all runs [default: --seed]")),
    mut_arg("method", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("resume", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("other_data", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("log", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("report", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("live", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("bind", |arg| arg.hide(true)),
    mut_arg("write_split", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("json", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("force", |arg| arg.hide(true).conflicts_with("methods")),
    mut_arg("checkpoint_every", |arg| arg.hide(true).conflicts_with("methods")),
    mut_group("tests", |group| group.required(true))
)]
pub(crate) struct Compare {
    /// The methods, separated by commas
    #[arg(long, required = true, value_delimiter = ',', value_name = "A,B,...")]
    pub(crate) methods: Vec<String>,
    /// Runs of each method
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    pub(crate) seeds: u64,
    /// Test samples to show
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub(crate) pictures: usize,
    #[command(flatten)]
    pub(crate) learn: Learn,
}

#[derive(ClapArgs)]
pub(crate) struct Reproduce {
    /// fruit, city, house, flower, dog, cifar10, online, synthetic, complexity, convergence, stream, ablation, restoring, or all
    pub(crate) name: String,
    /// The folder with the data, one folder per set; may be given several times. What is missing is named, with where to get it
    /// [default: that of the environment variable OCSC_DATA, or ../shared/data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Folder for report.html, its figures, and the runs
    #[arg(long, default_value = "reproduction", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// A minute's worth of it, on fewer images and with fewer filters
    #[arg(long)]
    pub(crate) small: bool,
    /// Other settings, in the form of the files in the folder `experiments`
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) settings: Option<PathBuf>,
    /// Only these methods, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "A,B,...")]
    pub(crate) methods: Vec<String>,
    /// Only so many seeds
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// End every run after so many seconds of learning
    #[arg(long, value_parser = positive, value_name = "SECONDS")]
    pub(crate) time_limit: Option<f64>,
    /// Only measure what each method takes for a few samples, and say how long the experiment will take
    #[arg(long, conflicts_with = "results")]
    pub(crate) estimate: bool,
    /// Also write our results beside the printed ones, as Markdown
    #[arg(long, value_name = "FILE.md")]
    pub(crate) results: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct Summarise {
    /// Logs of `ocsc learn`, and folders of `ocsc reproduce` and `ocsc compare`
    #[arg(required = true, value_name = "RUNS")]
    pub(crate) runs: Vec<PathBuf>,
    /// The page to write; its figures go to a folder beside it
    #[arg(long, default_value = "report.html", value_name = "FILE.html")]
    pub(crate) out: PathBuf,
    /// Also write the results beside those that the paper printed, as Markdown
    #[arg(long, value_name = "FILE.md")]
    pub(crate) results: Option<PathBuf>,
}

/// The options of `tune`.
#[derive(ClapArgs)]
#[command(
    mut_arg("beta", |arg| arg.hide(true).conflicts_with("data")),
    mut_arg("method", |arg| arg.hide(true)),
    mut_arg("stop_tol", |arg| arg.hide(true)),
    mut_arg("time_limit", |arg| arg.hide(true)),
    mut_arg("beta_ratio", |arg| arg.help("The fraction that the filters are learned with [default: 0.1]")),
    mut_arg("passes", |arg| arg.help("Passes over the samples or pieces to learn the filters [default: 1]"))
)]
pub(crate) struct Tune {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Use the filters and settings of this model, instead of learning filters
    #[arg(id = "resume", long = "model", value_name = "MODEL")]
    pub(crate) saved: Option<PathBuf>,
    /// A picture of the errors to write: .png or .svg
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Numbers of filters to try, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = at_least_one, value_name = "K,K,...")]
    pub(crate) try_filters: Vec<usize>,
    /// Sizes of filters to try, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "SIZE,SIZE,...")]
    pub(crate) try_size: Vec<Size>,
    /// Fractions of the largest useful beta to try, separated by commas [default: 0.5, 0.35, 0.25 and on to 0.011]
    #[arg(long, value_delimiter = ',', value_parser = positive, value_name = "RATIO,...")]
    pub(crate) ratios: Vec<f64>,
    /// Samples, or pieces of large ones, to take [default: as many as make 260,000 values]
    #[arg(long, value_parser = at_least_one, value_name = "N")]
    pub(crate) samples: Option<usize>,
    /// The share of the values to hide
    #[arg(long, default_value_t = 0.05, value_parser = fraction, value_name = "FRACTION")]
    pub(crate) hide: f64,
    /// Learn the filters anew at every beta, from those of the one before: the recommended ratio then suits learning too
    #[arg(long)]
    pub(crate) relearn: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(ClapArgs)]
pub(crate) struct Show {
    /// The model file
    pub(crate) model: PathBuf,
    /// The picture to write
    #[arg(long, value_name = "FILE.png")]
    pub(crate) out: PathBuf,
    /// Write the number of each filter above it, as codes and the tables of `ocsc events` count filters: from 0 up
    #[arg(long)]
    pub(crate) numbers: bool,
}

#[derive(ClapArgs)]
pub(crate) struct Info {
    /// The model file
    pub(crate) model: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Npy,
    Png,
    /// Arrays, and pictures of what is one; with --original the stacks of TIFF files besides
    Both,
    /// One file of pages for each volume, cube of channels or image: floats, or with --original the stack, name and depth of a TIFF
    Tiff,
}

impl Format {
    /// Whether exact values are written: arrays, and recordings.
    pub(crate) fn holds_values(self) -> bool {
        matches!(self, Format::Npy | Format::Both)
    }
}
