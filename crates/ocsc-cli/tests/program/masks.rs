//! `--mask` and `--nan-is-missing` at the command line.

use crate::common::{Bench, model, pictures, stack, write_npy};
use ndarray::Array2;

#[test]
fn masks_choose_the_preprocessing() {
    let bench = Bench::new();
    pictures(&bench, "photos", 2, 1);
    write_npy(&bench.path("mask.npy"), &Array2::from_shape_fn((20, 20), |(y, x)| y + x != 7));
    let learn = "photos --mask mask.npy --out m.safetensors";
    bench.learn(learn).ok();
    assert_eq!(model(&bench.path("m.safetensors")).config["preprocess"], serde_json::json!(["lowpass=5", "scale"]));
    bench.learn("photos --mask mask.npy --preset paper --out p.safetensors").ok();
    assert_eq!(model(&bench.path("p.safetensors")).config["preprocess"], serde_json::json!(["gray", "lcn"]));
    bench
        .learn(&format!("{learn} --preprocess gray,lcn,taper"))
        .refused(1, &["gray,lcn,taper", "--preprocess without whiten and taper"]);
    bench.learn("photos --preset paper --out plain.safetensors").ok();
    for command in
        ["code plain.safetensors photos --mask mask.npy --out c", "evaluate plain.safetensors photos --mask mask.npy"]
    {
        bench.run(command).refused(1, &["gray,lcn,taper", "observed", "without whiten and taper"]);
    }
    bench.run("evaluate m.safetensors photos --mask mask.npy").ok();
    bench.run("code m.safetensors photos --mask mask.npy --out codes").ok();
    write_npy(&bench.path("small.npy"), &Array2::from_elem((8, 8), true));
    bench.learn("photos --mask small.npy --out x").refused(1, &["photos/", "--mask small.npy", "20x20", "8x8"]);
    std::fs::create_dir(bench.path("masks")).unwrap();
    bench.shell("cp photos/1.png masks/");
    bench.learn("photos --mask masks --out x").refused(1, &["--mask", "no mask for photos/2.png"]);
}

#[test]
fn nan_in_arrays() {
    let bench = Bench::with_model();
    let mut images = stack(3, 16, 16, 1);
    images[[1, 3, 5]] = f32::NAN;
    write_npy(&bench.path("gaps.npy"), &images);
    bench
        .learn("gaps.npy --strict --beta 0.1 --out x")
        .refused(1, &["gaps.npy[1]", "row 3, column 5", "--nan-is-missing"]);
    bench.learn("gaps.npy --nan-is-missing --beta 0.1 --force --out x").ok();
    bench.run("evaluate m.safetensors gaps.npy --nan-is-missing").ok();
    bench.run("code m.safetensors gaps.npy --nan-is-missing --out codes").ok();
    bench.learn("gaps.npy --nan-is-missing --preprocess taper --out y").refused(1, &["taper", "without whiten"]);
    bench.learn("gaps.npy --nan-is-missing --preprocess lowpass,lcn --beta 0.1 --out smooth").ok();
    bench.run("evaluate smooth gaps.npy --nan-is-missing").ok();
}
