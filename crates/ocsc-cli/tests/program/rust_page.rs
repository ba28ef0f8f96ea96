//! The code on the site's page on Rust, which is here word for word.

use ocsc::{Config, Online, Sample, Shape};

fn learn(images: &[Vec<f32>], side: usize) -> ocsc::Result<Online<f32>> {
    let config = Config { n_filters: 64, filter_shape: vec![8, 8], beta: 0.5, ..Config::default() };
    let mut learner = Online::new(config, 1)?;
    for image in images {
        let step = learner.partial_fit(&Sample::new(Shape::image(side, side), image.clone())?)?;
        assert!(step.gap() <= 0.01);
    }
    Ok(learner)
}

#[test]
fn the_page_has_this_code_and_it_learns() {
    let page = include_str!("../../../../docs/start/rust.md");
    let code = page.split("```rust\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
    assert!(include_str!("rust_page.rs").contains(code), "{code}");
    let images: Vec<Vec<f32>> = (0..3).map(|t| (0..400).map(|i| ((i * (t + 3)) % 17) as f32 / 4.0).collect()).collect();
    assert_eq!(learn(&images, 20).unwrap().dictionary().n_filters(), 64);
}
