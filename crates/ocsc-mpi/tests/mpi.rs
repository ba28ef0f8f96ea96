//! `ocsc-mpi` under a real `mpirun`, on more processes than there are cores.

use clap::Parser;
use ocsc_cli::{Console, Learn, Ranks, commands};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ocsc-mpi");

/// A hang is a failure after so long; nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// `mpirun`, with everything that a test machine may not have.
fn mpirun(folder: &Path, ranks: usize) -> Command {
    let mut command = Command::new("mpirun");
    let settings = [
        // Open MPI: as root, more processes than cores, and no copying between processes, which containers forbid.
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ];
    command.envs(settings).current_dir(folder).stdin(Stdio::null()).args(["-n", &ranks.to_string()]);
    command
}

/// Runs `ocsc-mpi` with these words.
fn run(folder: &Path, ranks: usize, words: &str) -> Output {
    let mut command = mpirun(folder, ranks);
    finished(command.arg(PROGRAM).args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
}

/// What a process left when it ended.
fn finished(child: std::io::Result<Child>) -> Output {
    let mut child = child.expect("mpirun is installed");
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("still running after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn failed(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "expected a failure: {message}");
    message
}

/// An image, in a file of a format that needs no library.
fn write_image(path: &Path, height: usize, width: usize, pixel: impl Fn(usize, usize) -> u8) {
    let mut bytes = format!("P5\n{width} {height}\n255\n").into_bytes();
    bytes.extend((0..height * width).map(|i| pixel(i / width, i % width)));
    std::fs::write(path, bytes).unwrap();
}

/// A folder `data` of images of different sizes, and masks of the same names.
fn mixed(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["data", "masks"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    for i in 0..count {
        let (height, width) = (20 + 9 * (i % 4), 18 + 5 * (i % 5));
        let pixel = |y: usize, x: usize| {
            let wave =
                (0.3 * x as f64 + 0.1 * (i * y) as f64).sin() + ((x * x * 31 + y * 57 + i * 17) % 101) as f64 / 101.0;
            (128.0 + 60.0 * wave) as u8
        };
        write_image(&folder.path().join(format!("data/{i:02}.pgm")), height, width, pixel);
        let mask = |y: usize, x: usize| if (3 * y + x + i).is_multiple_of(7) { 0 } else { 255 };
        write_image(&folder.path().join(format!("masks/{i:02}.pgm")), height, width, mask);
    }
    folder
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

/// `ocsc learn`, in this process.
fn learn_alone(words: &str) {
    #[derive(Parser)]
    struct Solo {
        #[command(flatten)]
        learn: Learn,
    }
    let words = ["ocsc"].into_iter().chain(words.split_whitespace());
    commands::learn::run(&Solo::parse_from(words).learn, &Ranks::alone(), &Console::new(true)).unwrap();
}

/// Samples of mixed sizes, some with holes, in batches that leave ranks without work at the end of a pass.
#[test]
fn the_dictionary_does_not_depend_on_the_number_of_ranks() {
    let folder = mixed(7);
    let here = folder.path();
    let settings = "--filters 6 --size 5 --beta 0.4 --batch 5 --passes 3 --threads 1 --quiet";
    for ranks in 1..=4 {
        for (name, options) in [("plain", ""), ("masked", "--mask masks"), ("same", "--mask masks --reproducible")] {
            succeeded(&run(here, ranks, &format!("learn data {settings} {options} --out {name}{ranks}.st")));
            let (these, first) = (bytes(here, &format!("{name}{ranks}.st")), bytes(here, &format!("{name}1.st")));
            assert!(these == first, "{ranks} ranks, {name}");
        }
    }
    let settings = settings.replace(" --threads 1 --quiet", "");
    let [data, masks, out] = ["data", "masks", "one.st"].map(|name| here.join(name).display().to_string());
    learn_alone(&format!("{data} {settings} --mask {masks} --out {out}"));
    assert!(bytes(here, "one.st") == bytes(here, "same4.st"), "reproducible is what one process learns");
}

/// Pairs of atoms by the thousands, so that sums travel; and fewer samples than ranks.
#[test]
fn sums_travel_as_well_and_ranks_may_have_nothing_to_do() {
    let folder = mixed(2);
    let here = folder.path();
    let settings = "--filters 2 --size 3 --beta 0.01 --batch 2 --passes 4 --threads 1 --quiet";
    for ranks in [1, 2, 4] {
        succeeded(&run(here, ranks, &format!("learn data {settings} --out {ranks}.st --log {ranks}.jsonl")));
        assert!(bytes(here, &format!("{ranks}.st")) == bytes(here, "1.st"), "{ranks} ranks");
    }
    let log = String::from_utf8(bytes(here, "4.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((last["event"].as_str(), last["samples"].as_u64()), (Some("end"), Some(8)), "one log, of all samples");
    assert_eq!(log.lines().count(), 4 + 4 + 1, "steps, passes and the end, once each");
    let nonzeros: f64 =
        serde_json::from_str::<serde_json::Value>(log.lines().next().unwrap()).unwrap()["nonzeros"].as_f64().unwrap();
    // Two samples of up to 29x23 pixels; phi has 8 times 5x5 lags for each of 2 filters.
    let pairs = 2.0 * nonzeros * nonzeros / 2.0 * 25.0 / (29.0 * 23.0);
    assert!(pairs > (2 * 8 * 25) as f64 / 2.0, "there are to be more pairs than half of phi: {pairs}");
}

/// What is summed up is that of all samples, not of those that rank 0 coded.
#[test]
fn means_over_a_pass_count_the_samples_of_all_ranks() {
    let folder = mixed(7);
    let here = folder.path();
    // Batches of 5 and 2 samples: of both, rank 0 codes other shares.
    let settings = "--filters 4 --size 5 --beta 0.4 --batch 5 --passes 2 --threads 1 --quiet";
    for ranks in [1, 2, 3] {
        succeeded(&run(here, ranks, &format!("learn data {settings} --log {ranks}.jsonl --out {ranks}.st")));
        let log = String::from_utf8(bytes(here, &format!("{ranks}.jsonl"))).unwrap();
        let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for pass in lines.split(|line| line["event"] == "pass").take(2).zip([2, 5]) {
            let (steps, place) = pass;
            let number = |line: &serde_json::Value, name: &str| line[name].as_f64().unwrap();
            let mean = |name: &str| (5.0 * number(&steps[0], name) + 2.0 * number(&steps[1], name)) / 7.0;
            for name in ["objective", "nonzeros"] {
                let told = number(&lines[place], name);
                assert!((told - mean(name)).abs() <= 1e-12 * told, "{ranks} ranks: {name} {told}, not {}", mean(name));
            }
        }
    }
}

#[test]
fn evaluation_and_coding_are_divided() {
    let folder = mixed(9);
    let here = folder.path();
    let settings = "--filters 6 --size 5 --beta 0.4 --test-fraction 0.3 --batch 3 --threads 1 --quiet --json";
    let learned: serde_json::Value =
        serde_json::from_str(&succeeded(&run(here, 3, &format!("learn data {settings} --out m.st")))).unwrap();
    assert_eq!((learned["samples"].as_u64(), learned["test"]["samples"].as_u64()), (Some(6), Some(3)));
    let mut evaluations = Vec::new();
    for ranks in [1, 2, 4] {
        let printed = succeeded(&run(here, ranks, "evaluate m.st data --threads 1 --quiet --json"));
        let mut evaluation: serde_json::Value = serde_json::from_str(&printed).expect("one JSON object");
        evaluation["seconds"] = 0.into();
        evaluations.push(evaluation);
        let printed =
            succeeded(&run(here, ranks, &format!("code m.st data --threads 1 --quiet --json --out codes{ranks}")));
        let coded: serde_json::Value = serde_json::from_str(&printed).expect("one JSON object");
        assert_eq!((coded["samples"].as_u64(), coded["skipped"].as_u64()), (Some(9), Some(0)));
    }
    assert!(evaluations.iter().all(|e| *e == evaluations[0]), "{evaluations:?}");
    assert_eq!(evaluations[0]["samples"].as_u64(), Some(9));
    let codes = |ranks: usize| -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(here.join(format!("codes{ranks}"))).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|f| (PathBuf::from(f.file_name().unwrap()), std::fs::read(f).unwrap())).collect()
    };
    assert_eq!(codes(1).len(), 9);
    assert!(codes(1) == codes(4) && codes(1) == codes(2));
}

/// A run that takes a second or two and writes a checkpoint after every batch.
const LONG: &str = "--filters 12 --size 7 --beta 0.3 --batch 4 --passes 120 --threads 1 --checkpoint-every 4";

/// Whenever a rank is killed, the job ends, says so, and leaves a checkpoint from which any number of ranks comes to the same
/// dictionary.
#[test]
fn a_killed_rank_ends_the_job_and_the_job_can_be_resumed() {
    let folder = mixed(8);
    let here = folder.path();
    succeeded(&run(here, 2, &format!("learn data {LONG} --quiet --out whole.st")));
    let entropy = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos() as u64;
    let mut resumed = 0;
    for (round, ranks) in [3, 2, 4, 3].into_iter().enumerate() {
        let delay = Duration::from_millis((entropy / (1 + 7 * round as u64)) % 500);
        let model = format!("killed{round}.st");
        // The first one at any time, the others after their first checkpoint.
        let is_early = round == 0;
        let here_again = format!("round {round}, {ranks} ranks, killed after {delay:?}");
        let mut command = mpirun(here, ranks);
        command.arg(PROGRAM).args(format!("learn data {LONG} --out {model}").split_whitespace());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if !is_early {
            wait_for(&here.join(&model), &mut child);
        }
        std::thread::sleep(delay);
        let victims = processes_of(child.id());
        let victim = victims.get((entropy as usize + round) % victims.len().max(1)).copied();
        if let Some(victim) = victim {
            let _ = Command::new("kill").args(["-9", &victim.to_string()]).status();
        }
        let output = finished(Ok(child));
        // It may have been done before the signal came.
        if victim.is_some() && !is_early && !output.status.success() {
            let message = failed(&output);
            assert!(message.contains("rank ") && message.contains("signal 9"), "{here_again}: {message}");
        }
        if here.join(&model).exists() && !output.status.success() {
            // Otherwise every pass was made, or the run was killed before its first checkpoint.
            let words = format!("learn data --threads 1 --quiet --checkpoint-every 4 --resume {model}");
            succeeded(&run(here, ranks % 3 + 1, &words));
            resumed += 1;
            assert!(dictionary(here, &model) == dictionary(here, "whole.st"), "{here_again}");
        }
    }
    assert!(resumed > 0, "no round was killed between its first checkpoint and its end");
}

/// Waits for the first checkpoint, or the end.
fn wait_for(model: &Path, child: &mut Child) {
    while !model.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The ranks that an `mpirun` has started.
fn processes_of(parent: u32) -> Vec<u32> {
    let listed = Command::new("ps").args(["-e", "-o", "pid=,ppid=,comm="]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let line = |line: &str| -> Option<u32> {
        let mut words = line.split_whitespace();
        let (pid, ppid, name) = (words.next()?.parse().ok()?, words.next()?.parse::<u32>().ok()?, words.next()?);
        (ppid == parent && name.starts_with("ocsc-mpi")).then_some(pid)
    };
    text.lines().filter_map(line).collect()
}

fn dictionary(folder: &Path, name: &str) -> Vec<u8> {
    let bytes = bytes(folder, name);
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.tensor("dictionary").unwrap().data().to_vec()
}

#[test]
fn an_interrupted_job_leaves_a_checkpoint() {
    let folder = mixed(8);
    let here = folder.path();
    succeeded(&run(here, 2, &format!("learn data {LONG} --quiet --out whole.st")));
    let mut command = mpirun(here, 2);
    command.arg(PROGRAM).args(format!("learn data {LONG} --out m.st").split_whitespace());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&here.join("m.st"), &mut child);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let interrupted = finished(Ok(child));
    assert!(!interrupted.status.success(), "{}", String::from_utf8_lossy(&interrupted.stderr));
    // Whether the step was finished or the last checkpoint is the one of a batch before, it goes on to the same end.
    succeeded(&run(here, 3, "learn data --threads 1 --quiet --resume m.st"));
    assert!(dictionary(here, "m.st") == dictionary(here, "whole.st"));
}

#[test]
fn a_rank_that_cannot_go_on_is_named_with_its_reason() {
    let folder = mixed(6);
    let here = folder.path();
    let settings = "--filters 4 --size 5 --beta 0.4 --batch 3 --threads 1 --out m.st";
    // One file is damaged: passed over, or, if the run is strict, its end.
    std::fs::write(here.join("data/03.pgm"), &bytes(here, "data/03.pgm")[..300]).unwrap();
    let output = run(here, 3, &format!("learn data {settings} --json"));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("unusable: 1 sample;"), "{message}");
    let evaluated = run(here, 2, "evaluate m.st data --threads 1 --json");
    assert_eq!(evaluated.status.code(), Some(3), "{}", String::from_utf8_lossy(&evaluated.stderr));
    let coded = run(here, 2, "code m.st data --threads 1 --json --out codes");
    assert_eq!(coded.status.code(), Some(3), "{}", String::from_utf8_lossy(&coded.stderr));
    let learned = run(here, 3, &format!("learn data {settings} --json --skip-bad"));
    let learned: serde_json::Value = serde_json::from_str(&succeeded(&learned)).unwrap();
    assert_eq!((learned["samples"].as_u64(), learned["skipped"].as_u64()), (Some(5), Some(1)), "{message}");
    assert!(message.contains("03.pgm"), "{message}");
    let message = failed(&run(here, 3, &format!("learn data {settings} --strict")));
    assert!(message.contains("rank ") && message.contains("03.pgm"), "{message}");

    // Rank 1 sees no data, or other data.
    let as_rank = |other: &str| {
        let script = format!(
            "if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 1 ]; then data={other}; else data=data; fi; exec {PROGRAM} learn $data {settings} --force"
        );
        let child = mpirun(here, 3).args(["sh", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        failed(&finished(child))
    };
    let message = as_rank("missing");
    assert!(message.contains("rank 1 of 3") && message.contains("missing"), "{message}");
    std::fs::create_dir(here.join("other")).unwrap();
    write_image(&here.join("other/00.pgm"), 30, 30, |y, x| (y * x) as u8);
    let message = as_rank("other");
    assert!(message.contains("rank 1 of 3: expected the 6 samples that rank 0 sees, found 1"), "{message}");

    // Rank 2 may not have the memory it needs; the model that was there stays as it was.
    let before = bytes(here, "m.st");
    let script = format!(
        "if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 2 ]; then ulimit -v $((VIRTUAL)); fi; exec {PROGRAM} learn data --filters 300 --size 15 --threads 1 --beta 0.4 --out m.st --force"
    );
    // Enough to start with, and less than the statistics of 300 filters take.
    let child = mpirun(here, 3)
        .env("VIRTUAL", "400000")
        .args(["sh", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let message = failed(&finished(child));
    assert!(message.contains("rank 2") && (message.contains("memory") || message.contains("signal")), "{message}");
    assert!(bytes(here, "m.st") == before);
}

#[test]
fn what_only_one_process_can_do_is_refused_once() {
    let folder = mixed(3);
    let here = folder.path();
    let message = failed(&run(here, 2, "learn data --method ocsc-paper --filters 3 --size 5 --out m.st"));
    assert!(message.contains("expected ocsc") && message.contains("found ocsc-paper"), "{message}");
    assert_eq!(message.matches("error: ").count(), 1, "{message}");
    let message = failed(&run(here, 2, "learn - --raw 8x8 --out m.st"));
    assert!(message.contains("standard input"), "{message}");
    let message = failed(&run(here, 2, "learn data --out nowhere/m.st"));
    assert!(message.contains("nowhere") && message.matches("error: ").count() == 1, "{message}");
    let message = failed(&run(here, 3, "learn data --passes minus --out m.st"));
    assert_eq!(message.matches("--passes").count(), message.matches("invalid value").count(), "told once: {message}");
    let message = failed(&run(here, 2, "learn data --filters 3 --size 99 --out m.st"));
    assert!(message.contains("rank 0 of 2") && message.contains("--skip-small"), "with advice: {message}");
    // Help needs no team.
    let help = Command::new(PROGRAM).args(["learn", "--help"]).output().unwrap();
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.status.success() && text.contains("--reproducible") && text.contains("--forgetting"), "{text}");
}
