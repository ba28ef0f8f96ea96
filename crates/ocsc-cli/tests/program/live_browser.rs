//! The live page in a real browser: it loads without an error, its curves move, its buttons work. Skipped where there is no Chromium.
//!
//! The browser is driven by its debugging protocol over two pipes (`--remote-debugging-pipe`): JSON, each message ended by a zero.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use crate::common::Bench;
use crate::live::{ENDLESS, Served};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: Option<String>,
    calls: u64,
    /// What the page complained of.
    errors: Vec<Value>,
    _folder: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts Chromium, if it is there.
    fn start() -> Option<Self> {
        let is_there = |name: &&str| {
            Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|s| s.success())
        };
        let Some(program) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there) else {
            eprintln!("skipped: there is no Chromium (on Debian: apt-get install chromium)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["to", "from"].map(|name| folder.path().join(name));
        assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
        // The browser reads file 3 and writes file 4.
        let script = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                      --user-data-dir=\"$3\" --remote-debugging-pipe about:blank 3<\"$1\" 4>\"$2\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, program]).args(&pipes).arg(folder.path().join("profile"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let to = File::options().write(true).open(&pipes[0]).unwrap();
        let from = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut browser = Browser { child, to, from, session: None, calls: 0, errors: Vec::new(), _folder: folder };
        let targets = browser.call("Target.getTargets", json!({}));
        let page = targets["targetInfos"].as_array().unwrap().iter().find(|target| target["type"] == "page").unwrap();
        let attached = json!({"targetId": page["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", attached)["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            assert!(self.from.read_until(0, &mut bytes).unwrap() > 0, "the browser ended");
            let answer: Value = serde_json::from_slice(&bytes[..bytes.len() - 1]).unwrap();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            let is_error = match answer["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Log.entryAdded") => answer["params"]["entry"]["level"] == "error",
                Some("Runtime.consoleAPICalled") => answer["params"]["type"] == "error",
                _ => false,
            };
            self.errors.extend(is_error.then_some(answer));
        }
    }

    /// Returns the value of an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        self.call("Runtime.evaluate", asked)["result"]["value"].clone()
    }

    /// Waits until an expression in the page is true.
    fn wait_for(&mut self, expression: &str) {
        let start = Instant::now();
        while self.value(expression) != true {
            assert!(start.elapsed() < PATIENCE, "{expression}: {}", self.value("document.body.innerText"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn size(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Returns a picture of the page, which is kept for whoever wants to look.
    fn screenshot(&mut self, name: &str) -> image::RgbImage {
        use base64::prelude::{BASE64_STANDARD, Engine};
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = BASE64_STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), &bytes).unwrap();
        image::load_from_memory(&bytes).unwrap().into_rgb8()
    }
}

/// How many colours a picture has.
fn colours(picture: &image::RgbImage) -> usize {
    picture.pixels().map(|pixel| pixel.0).collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn the_page_loads_moves_pauses_and_stops_without_an_error() {
    let Some(mut browser) = Browser::start() else { return };
    let bench = Bench::with_data(8);
    let mut served = Served::learn(&bench, &format!("{ENDLESS} --test test.npy"));
    browser.size(1200, 900);
    browser.call("Page.navigate", json!({"url": served.url}));
    browser.wait_for("document.title.startsWith('Learning 4 filters')");
    browser.wait_for("document.querySelectorAll('#filters canvas').length === 4");
    browser.wait_for("document.querySelectorAll('#charts svg path').length === 3");
    browser.wait_for("document.querySelectorAll('#samples canvas').length === 3");
    let curve = "document.querySelector('#charts .train').getAttribute('d')";
    let before = browser.value(curve);
    browser.wait_for(&format!("{curve} !== {before}"));
    browser.value(
        "document.querySelector('#filters canvas').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))",
    );
    browser.wait_for("document.getElementById('filter-detail').textContent.includes('non-zeros per sample')");
    browser.value("document.getElementById('sort').value = 'used'; document.getElementById('sort').dispatchEvent(new Event('change'))");
    let wide = browser.screenshot("live-1200.png");
    assert_eq!(wide.dimensions(), (1200, 900));
    assert!(colours(&wide) > 100, "there is something to see");
    browser.size(400, 800);
    browser.wait_for("document.documentElement.scrollWidth <= 400");
    browser.screenshot("live-400.png");
    browser.value("document.getElementById('pause').click()");
    browser.wait_for("document.getElementById('phase').textContent === 'paused'");
    browser.value("document.getElementById('pause').click()");
    browser.wait_for("document.getElementById('phase').textContent !== 'paused'");
    browser.value("document.getElementById('stop').click()");
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
    browser.wait_for("document.getElementById('phase').textContent === 'interrupted'");
    // What was seen last stays.
    browser.wait_for(
        "document.getElementById('stop').hidden && document.querySelectorAll('#filters canvas').length === 4",
    );
    assert_eq!(browser.errors, Vec::<Value>::new());
}

#[test]
fn files_of_a_run_are_shown_by_a_page_without_a_server() {
    let Some(mut browser) = Browser::start() else { return };
    let bench = Bench::with_data(8);
    bench.learn("train.npy --test test.npy --beta 0.1 --passes 3 --log run.jsonl --out m.safetensors").ok();
    bench.run("code m.safetensors test.npy --out codes").ok();
    for (words, parts) in [
        ("run.jsonl m.safetensors codes", ["#filters canvas", "#charts path", "#samples canvas", "#codes tr"]),
        ("codes", ["#use rect", "#codes tr", "#codes td", "#figures dd"]),
    ] {
        bench.run(&format!("view {words} --out page.html")).ok();
        browser.call("Page.navigate", json!({"url": format!("file://{}", bench.path("page.html").display())}));
        for part in parts {
            browser.wait_for(&format!("document.querySelectorAll('{part}').length > 1"));
        }
        assert_eq!(browser.value("document.getElementById('stop').hidden"), true);
    }
    assert_eq!(browser.errors, Vec::<Value>::new());
}
