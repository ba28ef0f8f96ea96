//! The live page over plain HTTP: who is let in, what the buttons do, and that learning waits for nobody.

use crate::common::{Bench, dictionary_bytes};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

/// A run that ends only if somebody ends it.
pub(crate) const ENDLESS: &str = "train.npy --beta 0.1 --passes 1000000 --out m.safetensors --live 0";

const PATIENCE: Duration = Duration::from_secs(60);

/// A page that is served, by a program that ends with the test.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// All of the printed address.
    pub(crate) url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer: its status, its head and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    /// Waits for the address that a program prints.
    pub(crate) fn new(bench: &Bench, child: Child, file: &str) -> Self {
        let start = Instant::now();
        loop {
            let text = bench.text(file);
            if let Some(url) = text.split_whitespace().find(|word| word.starts_with("http://")) {
                let port = url.split(['/', ':']).filter_map(|part| part.parse().ok()).next_back().unwrap();
                return Served { child, port, url: url.to_owned() };
            }
            assert!(start.elapsed() < PATIENCE, "no address: {text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts `ocsc learn`, and waits until it has learned a little.
    pub(crate) fn learn(bench: &Bench, words: &str) -> Self {
        let served = Self::new(bench, bench.spawn(&format!("{words} --log run.jsonl")), "spawned.stderr");
        bench.wait_for_lines("run.jsonl", 3);
        served
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Sends a request with headers of its own, one a line.
    fn request(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = self.send(&format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"));
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        Answer { status: status.unwrap_or_else(|| panic!("{text}")), head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "Host: localhost\r\n")
    }

    fn press(&self, path: &str) -> u16 {
        let token = token(&self.get("/").body);
        self.request("POST", path, &format!("Host: localhost\r\nX-Ocsc-Token: {token}\r\nContent-Length: 0\r\n")).status
    }

    /// Opens the stream of events.
    fn events(&self) -> Events {
        Events(BufReader::new(self.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")))
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

/// The token that a page has for its buttons.
fn token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"ocsc-token\" content=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// Returns the next event of a kind; none at the end of the stream.
    fn next(&mut self, kind: &str) -> Option<Value> {
        let (mut line, mut last) = (String::new(), String::new());
        loop {
            line.clear();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("event", name)) => last = name.to_owned(),
                Some(("data", data)) if last == kind => return Some(serde_json::from_str(data).unwrap()),
                _ => {}
            }
        }
    }

    /// Waits for a picture after a step.
    fn frame(&mut self) -> Value {
        loop {
            let frame = self.next("frame").expect("a frame");
            if !frame["filters"].is_null() {
                return frame;
            }
        }
    }

    /// Waits until the run is in a phase.
    fn wait_for(&mut self, phase: &str) {
        let start = Instant::now();
        while self.next("status").expect("a status")["phase"] != phase {
            assert!(start.elapsed() < PATIENCE, "{phase}");
        }
    }
}

fn samples(frame: &Value) -> u64 {
    frame["now"]["samples"].as_u64().unwrap()
}

#[test]
fn the_page_and_its_events_tell_of_the_run() {
    let bench = Bench::with_data(8);
    let served = Served::learn(&bench, &format!("{ENDLESS} --test test.npy"));
    let page = served.get("/");
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("<!DOCTYPE html>") && page.body.contains("EventSource"));
    let head = page.head.to_lowercase();
    for header in ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff", "no-store"] {
        assert!(head.contains(header), "{head}");
    }
    let mut events = served.events();
    let first = events.frame();
    assert_eq!(first["filters"]["of"], 4);
    assert_eq!(first["filters"]["shape"], serde_json::json!([1, 1, 5, 5]));
    assert_eq!(first["filters"]["used"].as_array().unwrap().len(), 4);
    let rows = first["about"]["rows"].as_array().unwrap();
    assert!(rows.contains(&serde_json::json!(["data", "train.npy --test test.npy"])), "{rows:?}");
    let sample = &first["samples"][0];
    assert!(sample["name"].as_str().unwrap().contains("train.npy"), "{}", sample["name"]);
    assert_eq!((&sample["width"], &sample["height"]), (&16.into(), &16.into()));
    assert!(sample["difference"].is_string() && sample["scale"].as_f64().unwrap() > 0.0);
    let points = |frame: &Value, curve: &str| frame[curve].as_array().unwrap().len();
    let start = Instant::now();
    let later = loop {
        let frame = events.frame();
        if points(&frame, "test") > 0 && points(&frame, "train") > points(&first, "train") {
            break frame;
        }
        assert!(start.elapsed() < PATIENCE, "the curves stand still");
    };
    assert!(samples(&later) > samples(&first));
    for number in ["rate", "left", "objective", "worst_gap", "nonzeros", "memory"] {
        assert!(later["now"][number].as_f64().unwrap() > 0.0, "{number}: {}", later["now"]);
    }
}

#[test]
fn only_the_page_is_served_and_only_to_who_names_this_machine() {
    let bench = Bench::with_data(8);
    let mut served = Served::learn(&bench, ENDLESS);
    for path in ["/m.safetensors", "/../Cargo.toml", "/..%2f..%2fetc/passwd", "//etc/passwd", "/live.js", "/events/"] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
    for host in ["Host: evil.example\r\n", "Host: evil.example:80\r\n", "Host: 192.0.2.7\r\n", "Host: \r\n", ""] {
        let answer = served.request("GET", "/", host);
        assert!([400, 403].contains(&answer.status), "{host}: {}", answer.status);
        assert!(!answer.body.contains("ocsc-token"), "{host}");
    }
    for host in ["127.0.0.1", "localhost:9", "[::1]:1"] {
        assert_eq!(served.request("GET", "/", &format!("Host: {host}\r\n")).status, 200, "{host}");
    }
    let real = token(&served.get("/").body);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        for path in ["/", "/stop", "/pause?on=true", "/events"] {
            for given in ["", "X-Ocsc-Token: 0\r\n", "X-Ocsc-Token: 00000000000000000000000000000000\r\n"] {
                let headers = format!("Host: localhost\r\nContent-Length: 0\r\n{given}");
                assert_eq!(served.request(method, path, &headers).status, 403, "{method} {path}");
            }
        }
        // Not even the token lets anything else in.
        let headers = format!("Host: localhost\r\nContent-Length: 0\r\nX-Ocsc-Token: {real}\r\n");
        assert_eq!(served.request(method, "/", &headers).status, 405, "{method}");
    }
    let evil = format!("Host: evil.example\r\nContent-Length: 0\r\nX-Ocsc-Token: {real}\r\n");
    assert_eq!(served.request("POST", "/stop", &evil).status, 403);
    // The token does not go into addresses that may be kept or sent on.
    let in_address = format!("/stop?token={real}");
    assert_eq!(served.request("POST", &in_address, "Host: localhost\r\nContent-Length: 0\r\n").status, 403);
    assert_eq!(served.get("/stop").status, 405);
    assert_eq!(served.press("/pause?on=perhaps"), 400);
    let lines = bench.log("run.jsonl").len();
    bench.wait_for_lines("run.jsonl", lines + 5);
    assert!(served.is_running(), "the run went on through all of it");
}

#[test]
fn requests_that_are_none_do_no_harm() {
    let bench = Bench::with_data(8);
    let mut served = Served::learn(&bench, ENDLESS);
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(1 << 20));
    for bytes in [&b"\0\xff\x16\x03\x01"[..], b"GET\r\n\r\n", long.as_bytes(), b"POST /stop HTTP/1.1\r\nContent-Le"] {
        let mut stream = served.connect();
        let _ = stream.write_all(bytes);
        // Some are dropped unfinished.
        drop(stream);
    }
    let idle: Vec<TcpStream> = (0..60).map(|_| served.connect()).collect();
    assert_eq!(served.get("/").status, 200);
    drop(idle);
    let lines = bench.log("run.jsonl").len();
    bench.wait_for_lines("run.jsonl", lines + 5);
    assert!(served.is_running() && !bench.text("spawned.stderr").contains("panicked"));
}

#[test]
fn stop_does_what_ctrl_c_does() {
    let bench = Bench::with_data(8);
    let mut served = Served::learn(&bench, ENDLESS);
    let mut events = served.events();
    events.frame();
    assert_eq!(served.press("/stop"), 204);
    let mut last = Value::Null;
    while let Some(frame) = events.next("frame") {
        last = frame;
    }
    assert_eq!(last["ended"], "interrupted", "whoever looks is told how it ended");
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
    let stderr = bench.text("spawned.stderr");
    for part in ["stopped by the live page", "interrupted after", "m.safetensors is a checkpoint"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    let info = bench.run("info m.safetensors --json").ok().json();
    assert!(info["checkpoint"]["samples"].as_u64().unwrap() >= samples(&last));
    super::log::check(&bench.log("run.jsonl"));
}

#[test]
fn pause_leaves_a_checkpoint_and_waits() {
    let bench = Bench::with_data(8);
    let mut served = Served::learn(&bench, ENDLESS);
    assert_eq!(served.press("/pause?on=true"), 204);
    let mut events = served.events();
    events.wait_for("paused");
    let lines = bench.log("run.jsonl").len();
    let info = bench.run("info m.safetensors --json").ok().json();
    assert_eq!(info["checkpoint"]["step"], bench.log("run.jsonl").last().unwrap()["step"]);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(bench.log("run.jsonl").len(), lines, "nothing is learned meanwhile");
    assert_eq!(served.press("/pause?on=false"), 204);
    bench.wait_for_lines("run.jsonl", lines + 5);
    // A run that waits can be stopped.
    assert_eq!(served.press("/pause?on=true"), 204);
    events.wait_for("paused");
    assert_eq!(served.press("/stop"), 204);
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
}

/// Learns a little, with a page or without, and returns the dictionary.
fn learned(bench: &Bench, words: &str) -> Vec<u8> {
    bench.learn(&format!("train.npy --beta 0.1 --passes 6 --out m.safetensors {words}")).ok();
    dictionary_bytes(&bench.path("m.safetensors"))
}

#[test]
fn clients_that_never_read_and_twenty_that_do_change_nothing() {
    let bench = Bench::with_data(8);
    let alone = learned(&bench, "");
    let words = "train.npy --beta 0.1 --passes 6 --out m.safetensors --live 0";
    let mut served = Served::learn(&bench, words);
    let asked = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let deaf: Vec<TcpStream> = (0..5).map(|_| served.send(asked)).collect();
    // Tabs that are closed at once.
    (0..5).for_each(|_| drop(served.send(asked)));
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let mut events = served.events();
            std::thread::spawn(move || {
                let mut last = Value::Null;
                while let Some(frame) = events.next("frame") {
                    last = frame;
                }
                last
            })
        })
        .collect();
    assert_eq!(served.child.wait().unwrap().code(), Some(0), "{}", bench.text("spawned.stderr"));
    for client in clients {
        let last = client.join().unwrap();
        assert_eq!((&last["ended"], samples(&last)), (&"all passes made".into(), 48), "all see the end");
    }
    drop(deaf);
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == alone, "the same bits as without a page");
}

#[test]
fn ports_and_addresses_are_refused_before_anything_is_learned() {
    let bench = Bench::with_data(8);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let words = |live: &str| format!("train.npy --beta 0.1 --out m.safetensors {live}");
    bench.learn(&words(&format!("--live {port}"))).refused(1, &["--live", &format!("port {port}"), "in use"]);
    bench.learn(&words("--live 0 --bind 192.0.2.1")).refused(1, &["address 192.0.2.1", "of this machine"]);
    bench.learn(&words("--live 99999")).refused(2, &["99999", "0 to 65535"]);
    bench.learn(&words("--live 0 --bind here")).refused(2, &["here", "127.0.0.1"]);
    bench.learn(&words("--bind 127.0.0.1")).refused(2, &["--live"]);
    bench.run("demo --out d --live 99999").refused(2, &["0 to 65535"]);
    assert_eq!(bench.names("."), ["test.npy", "train.npy"].map(str::to_owned).into());
}

#[test]
fn others_need_the_token_of_the_address() {
    let bench = Bench::with_data(8);
    let served = Served::learn(&bench, &format!("{ENDLESS} --bind 0.0.0.0"));
    let (_, token) = served.url.split_once("/?token=").unwrap();
    assert_eq!(token.len(), 32);
    for path in ["/", "/events", "/?token=", "/?token=00000000000000000000000000000000"] {
        assert_eq!(served.get(path).status, 403, "{path}");
    }
    let host = "Host: 192.0.2.7:8765\r\n";
    assert_eq!(served.request("GET", &format!("/?token={token}"), host).status, 200);
    assert_eq!(served.request("GET", &format!("/?token={token}"), "Host: evil.example\r\n").status, 403);
}

#[test]
fn a_finished_run_a_model_and_codes_are_viewed() {
    let bench = Bench::with_data(8);
    bench.learn("train.npy --test test.npy --beta 0.1 --passes 2 --log run.jsonl --out m.safetensors").ok();
    bench.run("code m.safetensors test.npy --out codes").ok();
    for (words, parts) in [
        ("run.jsonl", vec!["train", "test"]),
        ("m.safetensors", vec!["filters"]),
        ("codes", vec!["codes", "used"]),
        ("run.jsonl m.safetensors codes", vec!["train", "test", "filters", "codes", "samples"]),
    ] {
        let child = bench.spawn_words(&format!("view {words} --port 0"));
        let mut served = Served::new(&bench, child, "spawned.stdout");
        assert_eq!(served.get("/").status, 200);
        let frame = served.events().next("frame").unwrap();
        for part in ["train", "test", "filters", "codes", "samples"] {
            let is_there = frame[part].is_object() || frame[part].as_array().is_some_and(|all| !all.is_empty());
            assert_eq!(is_there, parts.contains(&part), "{words}: {part}");
        }
        assert_eq!(served.press("/stop"), 409, "there is nothing to stop");
        assert!(served.is_running());
        // Ctrl-C is how it ends.
        let sent = std::process::Command::new("kill").args(["-INT", &served.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(served.child.wait().unwrap().code(), Some(0), "{words}");
    }
    let ran = bench.run("view run.jsonl m.safetensors codes --out page.html").ok();
    assert!(ran.stdout.contains("page.html"));
    let page = bench.text("page.html");
    assert!(page.contains("\"train\":[[") && page.contains("connect-src 'none'"));
}

#[test]
fn what_cannot_be_viewed_is_named() {
    let bench = Bench::with_data(8);
    bench.learn("train.npy --beta 0.1 --log run.jsonl --out m.safetensors").ok();
    bench.learn("train.npy --beta 0.1 --seed 1 --out other.safetensors").ok();
    bench.run("code other.safetensors test.npy --out codes").ok();
    bench.write("empty.jsonl", b"");
    for (words, code, parts) in [
        ("view", 2, vec!["FILE"]),
        ("view absent.jsonl", 1, vec!["absent.jsonl"]),
        ("view empty.jsonl", 1, vec!["empty.jsonl", "expected records"]),
        ("view train.npy", 1, vec!["train.npy"]),
        ("view run.jsonl run.jsonl", 1, vec!["run.jsonl", "ocsc report"]),
        ("view m.safetensors other.safetensors", 1, vec!["other.safetensors", "expected one model"]),
        ("view m.safetensors codes", 1, vec!["of another"]),
        ("view run.jsonl --out page.txt", 1, vec!["page.txt", ".html"]),
    ] {
        bench.run(words).refused(code, &parts);
    }
}

#[test]
fn the_demonstration_has_a_page_too() {
    let bench = Bench::new();
    let child = bench.spawn_words("demo --filters 2 --passes 1000 --out d --live 0");
    let mut served = Served::new(&bench, child, "spawned.stderr");
    let frame = served.events().frame();
    assert_eq!(frame["filters"]["of"], 2);
    assert!(frame["about"]["title"].as_str().unwrap().contains("dead leaves"));
    assert_eq!(served.press("/stop"), 204);
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
    assert!(bench.path("d/report.html").exists(), "what was learned is reported");
}
