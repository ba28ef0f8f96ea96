//! `ocsc report`, `ocsc compare` and `ocsc reproduce`: pages and figures read back, and compared with the runs.

use crate::common::{Bench, assert_close, pictures, stack, write_npy};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Two methods, two seeds, on tiny data.
const COMPARE: &str = "compare train.npy --test test.npy --methods ocsc,ocsc-paper --seeds 2 --pictures 1 --filters 4 \
                       --size 5 --beta 0.1 --passes 2 --threads 1 --out c";

/// The page, which must be well-formed and need nothing else.
fn page(bench: &Bench, name: &str) -> Page {
    let text = bench.text(name);
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let page = roxmltree::Document::parse_with_options(&text, options).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(!text.contains("<script") && !text.contains("url("));
    let inside = |v: &str| v.starts_with("data:") || v.starts_with('#');
    let outside = |n: roxmltree::Node| ["src", "href"].iter().any(|a| n.attribute(*a).is_some_and(|v| !inside(v)));
    assert!(!page.descendants().any(outside));
    let count = |tag: &str| page.descendants().filter(|n| n.tag_name().name() == tag).count();
    let words =
        |n: roxmltree::Node| n.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect::<String>();
    let tagged = |tag: &'static str| page.descendants().filter(move |n| n.tag_name().name() == tag);
    Page {
        charts: count("svg"),
        images: count("img"),
        text: tagged("body").map(words).collect(),
        bold: tagged("td")
            .flat_map(|n| n.descendants())
            .filter(|n| n.tag_name().name() == "strong")
            .map(words)
            .collect(),
        rows: tagged("tr").map(|n| n.children().map(words).filter(|w| !w.trim().is_empty()).collect()).collect(),
    }
}

struct Page {
    charts: usize,
    images: usize,
    text: String,
    /// What stands in bold in tables.
    bold: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The lines of a figure: series -> (x, y, low, high).
fn csv(bench: &Bench, name: &str) -> BTreeMap<String, Vec<Vec<f64>>> {
    let text = bench.text(name);
    let mut series: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let (name, values) = line.split_once(',').unwrap();
        series.entry(name.to_owned()).or_default().push(values.split(',').filter_map(|v| v.parse().ok()).collect());
    }
    series
}

/// (processor time, test objective) after each pass.
fn passes(lines: &[Value]) -> Vec<(f64, f64)> {
    let passes = lines.iter().filter(|l| l["event"] == "pass");
    passes.map(|l| (l["cpu_seconds"].as_f64().unwrap(), l["test_objective"].as_f64().unwrap())).collect()
}

#[test]
fn a_report_of_logs_has_the_values_of_the_runs() {
    let bench = Bench::with_data(4);
    for seed in [0, 1] {
        let words = format!("--seed {seed} --log a-seed{seed}.jsonl --out a-seed{seed}.safetensors");
        bench.learn(&format!("train.npy --test test.npy --beta 0.1 --passes 3 {words}")).ok();
    }
    bench.learn("train.npy --test test.npy --beta 0.1 --log alone.jsonl --out alone.safetensors").ok();
    let ran = bench.run("report a-seed0.jsonl a-seed1.jsonl alone.jsonl --out r.html").ok();
    assert!(ran.stdout.contains("open r.html") && ran.stdout.contains("r-figures"), "{}", ran.stdout);

    let figure = csv(&bench, "r-figures/runs-test-objective.csv");
    let [first, second] = [0, 1].map(|seed| passes(&bench.log(&format!("a-seed{seed}.jsonl"))));
    assert_eq!(figure["a"].len(), 3);
    for (point, (one, two)) in figure["a"].iter().zip(first.iter().zip(&second)) {
        let mean = (one.1 + two.1) / 2.0;
        let deviation = (one.1 - two.1).abs() / 2f64.sqrt();
        for (found, expected) in point.iter().zip([(one.0 + two.0) / 2.0, mean, mean - deviation, mean + deviation]) {
            assert_close(*found, expected, 1e-12);
        }
    }
    // A single run has no band, and its values to the last bit.
    let alone = passes(&bench.log("alone.jsonl"));
    assert_eq!(figure["alone"], [vec![alone[0].0, alone[0].1]]);

    let svg = bench.text("r-figures/runs-test-objective.svg");
    assert!(
        svg.contains("stroke=\"#") && !svg.contains("var("),
        "programs that are no browsers know no variables: {svg}"
    );
    let svg = roxmltree::Document::parse(&svg).unwrap();
    assert_eq!(svg.descendants().filter(|n| n.attribute("class") == Some("band")).count(), 1);
    let page = page(&bench, "r.html");
    assert_eq!((page.charts, page.images), (3, 2), "objective, PSNR and training steps; a dictionary for each name");
    assert_eq!(csv(&bench, "r-figures/runs-training-objective.csv")["a"].len(), 12, "every step");
    assert!(page.text.contains("The peak of the PSNR"), "{}", page.text);
    let row = page.rows.iter().find(|row| row[0] == "a").unwrap();
    assert!(row[1].contains(" ± ") && row[7] == "2", "{row:?}");
    let passes = page.rows.iter().find(|row| row[0] == "passes").unwrap();
    assert_eq!(passes[1], "a: 3; alone: 1", "the settings come from the models beside the logs");
}

#[test]
fn logs_of_unlike_runs_have_no_winner() {
    let bench = Bench::with_data(4);
    for (name, beta) in [("a", 0.1), ("b", 0.5)] {
        for seed in [0, 1] {
            let files = format!("--log {name}-seed{seed}.jsonl --out {name}-seed{seed}.safetensors");
            bench.learn(&format!("train.npy --test test.npy --beta {beta} --seed {seed} {files}")).ok();
        }
    }
    bench.run("report a-seed0.jsonl a-seed1.jsonl b-seed0.jsonl b-seed1.jsonl --out r.html").ok();
    let page = page(&bench, "r.html");
    assert_eq!(page.bold, [""; 0]);
    assert!(page.text.contains("nothing is bold"), "{}", page.text);
    assert!(page.rows.iter().any(|row| row[0] == "beta" && row[1] == "a: 0.1; b: 0.5"), "{:?}", page.rows);
}

#[test]
fn a_report_needs_runs() {
    let bench = Bench::new();
    bench.run("report none.jsonl").refused(1, &["none.jsonl", "run log"]);
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.run("report empty").refused(1, &["no runs found", "RUN.jsonl"]);
    bench.write("a.jsonl", b"");
    bench.run("report a.jsonl --out r.png").refused(1, &["r.png", ".html"]);
    bench.run("report a.jsonl").ok();
    assert!(page(&bench, "report.html").text.contains("One run"));
}

#[test]
fn methods_are_compared_on_ones_own_data() {
    let bench = Bench::with_data(4);
    let ran = bench.run(COMPARE).ok();
    assert!(ran.stderr.contains("1 of 4: ocsc, seed 0") && ran.stdout.contains("open c/report.html"), "{}", ran.stderr);
    let page = page(&bench, "c/report.html");
    // Two dictionaries, and a triplet of each method.
    assert_eq!((page.charts, page.images), (3, 2 + 2 * 3));
    assert_eq!(bench.text("c/report.html").matches("class=\"scale\"").count(), 2, "differences have a scale");
    assert!(page.bold.len() >= 2 && page.bold.iter().all(|b| b.contains('±')), "{:?}", page.bold);
    assert!(page.text.contains("ocsc: test.npy[0]"));
    assert!(page.text.contains("ocsc compare train.npy --test test.npy"));

    // Each run is one of `ocsc learn` with the options of the call.
    bench.run("learn train.npy --test test.npy --filters 4 --size 5 --beta 0.1 --passes 2 --threads 1 --seed 1 --log same.jsonl --out same.safetensors").ok();
    let objective = |name: &str| bench.log(name).iter().rev().find_map(|l| l["test_objective"].as_f64()).unwrap();
    assert_eq!(objective("c/runs/compare/ocsc-seed1.jsonl"), objective("same.jsonl"));
    let figure = csv(&bench, "c/report-figures/compare-test-psnr.csv");
    assert_eq!((figure["ocsc"].len(), figure["ocsc-paper"].len()), (2, 2));

    // What is done is kept.
    let when = |name: &str| std::fs::metadata(bench.path(name)).unwrap().modified().unwrap();
    let before = when("c/runs/compare/ocsc-seed0.jsonl");
    let again = bench.run(COMPARE).ok();
    assert!(!again.stderr.contains("1 of 4") && before == when("c/runs/compare/ocsc-seed0.jsonl"), "{}", again.stderr);
    // Other settings are other runs.
    bench.run(&COMPARE.replace("0.1", "0.2")).ok();
    assert!(before < when("c/runs/compare/ocsc-seed0.jsonl"));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let bench = Bench::with_data(2);
    bench.run("compare train.npy --test test.npy --methods ocsc,osx --out c").refused(1, &["osx", "ocsc-paper"]);
    bench.run("compare train.npy --methods ocsc --out c").refused(2, &["--test"]);
    bench.run("compare train.npy --test test.npy --out c").refused(2, &["--methods"]);
    bench.run("compare train.npy --test test.npy --methods ocsc --method ocsc --out c").refused(2, &["--method"]);
    bench.run("compare no.npy --test test.npy --methods ocsc --out c").failed(1, &["failed", "no.npy"]);
}

/// The data that all small experiments need, tiny.
fn shared() -> Bench {
    let bench = Bench::new();
    for folder in ["d/fruit", "d/city", "d/flower"] {
        std::fs::create_dir_all(bench.path(folder)).unwrap();
    }
    write_npy(&bench.path("d/fruit/train_lcne.npy"), &stack(3, 18, 18, 1));
    write_npy(&bench.path("d/fruit/test_lcne.npy"), &stack(2, 18, 18, 2));
    write_npy(&bench.path("d/city/train_lcne.npy"), &stack(3, 18, 18, 3));
    pictures(&bench, "d/flower/train", 4, 5);
    pictures(&bench, "d/flower/test", 2, 9);
    bench
}

#[test]
fn everything_small_in_one_go() {
    let bench = shared();
    let ran = bench.run("reproduce all --small --data d --out o --results R.md --threads 1").ok();
    // What has no data here is named, with where to get it.
    assert!(ran.stderr.contains("house: ") && ran.stderr.contains("give your own"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cifar-10-binary.tar.gz"), "{}", ran.stderr);
    let page = page(&bench, "o/report.html");
    for part in [
        "Fruit (small)",
        "City (small)",
        "Flower (small)",
        "How time and memory grow (small)",
        "Convergence (small)",
        "Ablation (small)",
        "Dictionaries in use (small)",
        "What was tried",
    ] {
        assert!(page.text.contains(part), "{part}");
    }
    let row = |name: &str| page.rows.iter().find(|row| row[0] == name).cloned().unwrap_or_default();
    assert_eq!(row("dictionary-fista").len(), 5);
    assert!(!page.rows.iter().flatten().any(|entry| entry == "not run"), "every method of every table was run");
    let results = bench.text("R.md");
    for part in
        ["28.61 ± 0.06", "| ocsc |", "## Fruit (small)", "## house", "Not run:", "Figure 7", "K^2 P", "**Ours:**"]
    {
        assert!(results.contains(part), "{part}: {results}");
    }
    // A report of the runs alone is the same one.
    bench.run("report o/runs --out again.html --results again.md").ok();
    assert!(results.starts_with(bench.text("again.md").trim_end()), "the skipped ones are at the end");
    let again = self::page(&bench, "again.html");
    assert_eq!((again.charts, again.images, again.rows), (page.charts, page.images, page.rows));

    // The gradient of the convergence experiment is that of its cells.
    let cell: Value = serde_json::from_str(&bench.text("o/runs/convergence-small/ocsc-seed0.json")).unwrap();
    let figure = csv(&bench, "o/report-figures/convergence-small-projected-gradient.csv");
    let points: Vec<Vec<f64>> = serde_json::from_value(cell["series"]["averaged"].clone()).unwrap();
    assert_eq!(figure["ocsc: averaged objective"], points);
    assert!(points.len() > 3 && points.iter().all(|p| p[1] > 0.0));
}

/// An experiment on the bench's data.
fn mine(head: &str) -> String {
    format!("title = 'Mine'\nseeds = 1\n{head}\n[[data]]\nwhat = 'waves'\ntrain = ['train.npy']\ntest = ['test.npy']")
}

#[test]
fn settings_are_searched_for_on_training_samples_before_the_runs() {
    let bench = Bench::with_data(6);
    let settings = mine(
        "methods = ['ocsc', 'fcsc']\nlearn = '--filters 4 --size 5 --beta 0.1 --test-seconds 1e-9'\n[search]\nseconds = 600\n\
         hold_out = 0.34\n[search.candidates]\nocsc = ['--passes 1', '--passes 9', '--passes 0']",
    );
    bench.write("mine.toml", settings.as_bytes());
    let call = "reproduce mine --settings mine.toml --data . --out o --results R.md";
    let ran = bench.run(call).ok();
    // More passes give a lower objective; a run without any has none.
    assert!(ran.stderr.contains("ocsc: chosen --passes 9"), "{}", ran.stderr);
    let words = |name: &str| {
        let cell: Value = serde_json::from_str(&bench.text(&format!("o/runs/mine/{name}.json"))).unwrap();
        let words: Vec<String> = serde_json::from_value(cell["words"].clone()).unwrap();
        words.join(" ")
    };
    assert!(words("ocsc-seed0").contains("--passes 9") && !words("fcsc-seed0").contains("--passes"));
    let tried = words("search/ocsc-candidate1-seed0");
    assert!(tried.contains("--test-fraction 0.34") && tried.contains("--time-limit 200"), "{tried}");
    assert!(!tried.contains("test.npy") && !tried.contains("--test-seconds"), "{tried}");
    let page = page(&bench, "o/report.html");
    assert!(
        page.bold.iter().any(|b| b == "--passes 9") || page.bold.iter().any(|b| b == "`--passes 9`"),
        "{:?}",
        page.bold
    );
    assert!(bench.text("R.md").contains("**What was tried.**"), "{}", bench.text("R.md"));
    let again = bench.run(call).ok();
    assert!(!again.stderr.contains("1 of 3") && again.stderr.contains("ocsc: chosen --passes 9"), "{}", again.stderr);
    bench.write("mine.toml", settings.replace("hold_out = 0.34", "hold_out = 2").as_bytes());
    bench.run(call).refused(1, &["mine.toml", "search: hold_out", "between 0 and 1"]);
}

#[test]
fn an_estimate_comes_before_the_runs() {
    let bench = Bench::with_data(4);
    let settings = mine("methods = ['ocsc', 'fcsc']\nlearn = '--filters 4 --size 5 --beta 0.1'");
    bench.write("mine.toml", settings.as_bytes());
    // The data are found where the environment says.
    let call = "reproduce mine --settings mine.toml --out o";
    let ran = bench.shell(&format!("OCSC_DATA=. $OCSC {call} --estimate")).ok();
    assert!(ran.stdout.contains("mine  2 runs, about"), "{}", ran.stdout);
    assert!(!bench.path("o/report.html").exists() && !bench.path("o/runs/mine/ocsc-seed0.json").exists());
    let ran = bench.run(&format!("{call} --data nowhere --data .")).ok();
    assert!(
        ran.stderr.contains("2 runs, about") && ran.stderr.contains("2 of 2: fcsc, seed 0 (about"),
        "{}",
        ran.stderr
    );
    let again = bench.run(&format!("{call} --data . --estimate")).ok();
    assert!(again.stdout.contains("(2 of them done already)"), "{}", again.stdout);
}

#[test]
fn a_run_that_ended_before_its_time_limit_is_kept_under_another() {
    let bench = Bench::with_data(4);
    let call = "reproduce mine --settings mine.toml --data . --out o --small";
    let ran = |limit: &str| {
        let settings =
            mine(&format!("methods = ['ocsc']\nlearn = '--filters 4 --size 5 --beta 0.1 --time-limit {limit}'"));
        bench.write("mine.toml", settings.as_bytes());
        bench.run(call).ok().stderr.contains("1 of 1: ocsc")
    };
    assert!(ran("1000"));
    assert!(!ran("2000") && !ran("500"), "neither limit was reached");
    // One that would have ended it, and one that did.
    assert!(ran("1e-9") && ran("2000"));
}

#[cfg(unix)]
#[test]
fn a_run_that_was_cut_short_goes_on_from_its_checkpoint() {
    let bench = Bench::with_data(60);
    let learn = "--filters 8 --size 5 --beta 0.05 --passes 12 --checkpoint-every 10 --test-every 100 --threads 1";
    let settings = mine(&format!("methods = ['ocsc']\nlearn = '{learn} --stop-tol 1e-9'"));
    bench.write("mine.toml", settings.as_bytes());
    let call = "reproduce mine --settings mine.toml --data . --out o --small";
    let mut child = bench.spawn_words(call);
    let log = bench.path("o/runs/mine-small/ocsc-seed0.jsonl");
    let start = SystemTime::now();
    while !std::fs::metadata(&log).is_ok_and(|log| log.len() > 20_000) {
        assert!(start.elapsed().unwrap().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // Not even time for a last checkpoint.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!bench.path("o/runs/mine-small/ocsc-seed0.json").exists());
    let ran = bench.run(call).ok();
    assert!(ran.stderr.contains("going on from its checkpoint"), "{}", ran.stderr);
    assert!(!bench.path("o/runs/mine-small/ocsc-seed0.begun").exists());
    // As if nothing had happened.
    bench.run(&format!("learn train.npy --test test.npy {learn} --log same.jsonl --out same.safetensors")).ok();
    let lines = bench.log("o/runs/mine-small/ocsc-seed0.jsonl");
    super::log::check(&lines);
    let objectives = |lines: &[Value]| lines.iter().map(|l| l["objective"].as_f64()).collect::<Vec<_>>();
    assert_eq!(objectives(&lines), objectives(&bench.log("same.jsonl")));
    // Other settings are another run, from the beginning.
    bench.write("mine.toml", settings.replace("0.05", "0.06").as_bytes());
    assert!(!bench.run(call).ok().stderr.contains("going on"), "another run");
}

#[test]
fn one_experiment_without_its_data_or_with_other_settings() {
    let bench = Bench::with_data(3);
    bench.run("reproduce fruit --data d --out o").refused(1, &["fruit", "d/fruit/train_lcne.npy", "tata1661"]);
    bench.run("reproduce apple").refused(1, &["apple", "fruit, city"]);
    let mut settings = "title = 'Mine'\nmethods = ['ocsc', 'fcsc']\nseeds = 1\n".to_owned();
    settings += "learn = '--filters 4 --size 5 --beta 0.1'\n[[data]]\nwhat = 'waves'\ntrain = ['train.npy']\ntest = ['test.npy']";
    bench.write("mine.toml", settings.as_bytes());
    bench.run("reproduce mine --settings mine.toml --data . --out o").ok();
    let page = page(&bench, "o/report.html");
    let row = page.rows.iter().find(|row| row[0] == "fcsc").unwrap();
    assert_eq!(row[7], "1");
    let words = "reproduce mine --settings mine.toml --data . --out o --methods ocsc,wished-for";
    bench.run(words).refused(1, &["methods", "ocsc-paper", "wished-for"]);
    bench.run("reproduce all --settings mine.toml").refused(1, &["--settings", "all"]);
    bench.write("mine.toml", b"titel = 'Mine'");
    bench.run("reproduce mine --settings mine.toml").refused(1, &["mine.toml", "titel"]);
}

#[test]
fn memory_ends_where_it_is_said_to() {
    let bench = Bench::with_data(3);
    let mut settings =
        "title = 'G'\nkind = 'growth'\nmethods = ['ocsc', 'ocsc-paper', 'fcsc']\nseeds = 1\nsizes = [1, 2, 9]\n"
            .to_owned();
    settings += "memory_limit = '32MB'\nlearn = '--filters 200 --size 5 --beta 0.1'\n";
    settings += "[[data]]\nwhat = 'waves'\ntrain = ['train.npy']\ntest = ['test.npy']";
    bench.write("g.toml", settings.as_bytes());
    bench.run("reproduce g --settings g.toml --data . --out o").ok();
    let page = page(&bench, "o/report.html");
    let row = |name: &str| page.rows.iter().find(|row| row[0] == name).cloned().unwrap();
    // There are three images; nine would be a lie.
    assert_eq!((row("ocsc")[1].as_str(), row("ocsc")[6].as_str()), ("2", "-"));
    assert!(row("ocsc-paper")[6].starts_with("1 (needs"), "{:?}", row("ocsc-paper"));
    // What would fit, in the paper's memory and in this machine's.
    assert_eq!(row("ocsc")[9..11], ["any", "any"].map(str::to_owned));
    let most = row("fcsc")[9..11].iter().map(|n| n.parse().unwrap()).collect::<Vec<usize>>();
    assert!(most[1] > 1000 && (3..1000).contains(&most[0]), "{most:?}");
    assert!(!bench.path("o/runs/g/ocsc-paper-images2-seed0.json").exists(), "what is larger still is not tried");
}

#[cfg(unix)]
#[test]
fn an_interrupted_experiment_goes_on() {
    let bench = Bench::with_data(60);
    let mut settings = "title = 'I'\nmethods = ['ocsc', 'ocsc-paper']\nseeds = 2\n".to_owned();
    settings += "learn = '--filters 8 --size 5 --beta 0.1 --passes 4'\n";
    settings += "[[data]]\nwhat = 'waves'\ntrain = ['train.npy']\ntest = ['test.npy']";
    bench.write("i.toml", settings.as_bytes());
    let call = "reproduce i --settings i.toml --data . --out o --threads 1";
    let mut child = bench.spawn_words(call);
    let first = bench.path("o/runs/i/ocsc-seed0.json");
    let start = SystemTime::now();
    while !first.exists() {
        assert!(start.elapsed().unwrap().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let stderr = bench.text("spawned.stderr");
    assert!(stderr.contains("the same command goes on from here"), "{stderr}");
    assert!(!bench.path("o/runs/i/ocsc-paper-seed1.json").exists() && !bench.path("o/report.html").exists());

    let log = bench.read("o/runs/i/ocsc-seed0.jsonl");
    let ran = bench.run(call).ok();
    assert!(!ran.stderr.contains("1 of 4") && ran.stderr.contains("4 of 4: ocsc-paper, seed 1"), "{}", ran.stderr);
    assert!(log == bench.read("o/runs/i/ocsc-seed0.jsonl"));
    assert_eq!(page(&bench, "o/report.html").rows.iter().find(|row| row[0] == "ocsc-paper").unwrap()[7], "2");
}
