//! `ocsc demo`.

use crate::common::{Bench, model};

#[test]
fn the_demo_writes_a_page_with_all_its_pictures() {
    let bench = Bench::new();
    let ran = bench.run("demo --filters 4 --out d").ok();
    for part in ["held-out objective", "certified", "open d/report.html"] {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    assert!(ran.stderr.contains("learning"), "{}", ran.stderr);
    assert_eq!(model(&bench.path("d/model.safetensors")).dictionary.dim(), (4, 1, 11, 11));
    assert!(image::open(bench.path("d/dictionary.png")).is_ok());
    let lines = bench.log("d/run.jsonl");
    super::log::check(&lines);
    assert_eq!(lines.iter().filter(|l| l["event"] == "step").count(), 24);
    let page = bench.text("d/report.html");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let page = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let pictures = page.descendants().filter(|n| n.has_tag_name(("http://www.w3.org/1999/xhtml", "img")));
    let sources: Vec<&str> = pictures.map(|n| n.attribute("src").unwrap()).collect();
    assert_eq!(sources.len(), 1 + 3 * 4);
    assert!(sources.iter().all(|s| s.starts_with("data:image/png;base64,")));
    assert!(page.root_element().descendants().any(|n| n.text().is_some_and(|t| t.contains("ocsc demo --filters 4"))));
    let settings = page.descendants().filter(|n| n.attribute("class") == Some("settings"));
    assert!(settings.flat_map(|n| n.ancestors().nth(2)).all(|n| n.tag_name().name() == "details"));
    assert!(
        page.descendants().any(|n| n.text() == Some("--filters 4 --passes 1 --seed 0")),
        "the settings that one can give"
    );
    let evaluated = bench.run("info d/model.safetensors --json").ok().json();
    assert_eq!(evaluated["config"]["preprocess"], serde_json::json!(["gray", "lcn", "taper"]));
}

#[test]
fn the_demo_needs_a_folder() {
    let bench = Bench::new();
    bench.write("file", b"");
    bench.run("demo --out file").refused(1, &["file", "cannot make this folder"]);
    bench.run("demo --filters 0").refused(2, &["--filters", "at least 1"]);
}
