"""Files go back and forth between the package and the program, and both compute the same."""

import json

import numpy as np
import pytest
from conftest import smooth

import ocsc
from ocsc import Codes, OnlineCSC

SMALL = ["--filters", 5, "--size", 5, "--beta", 0.3]


def test_the_same_settings_give_the_same_bits(program, tmp_path):
    images = smooth(8)
    np.save(tmp_path / "x.npy", images)
    params = dict(n_filters=5, filter_shape=(5, 5), beta=0.3)
    cases = [
        ([], {}),
        (["--passes", 3, "--batch", 2, "--seed", 7], dict(passes=3, batch_size=2, random_state=7)),
        (["--boundary", "free", "--init", "patches"], dict(boundary="free", init="patches")),
        (["--preprocess", "mean,lcn", "--dtype", "f64"], dict(preprocess="mean,lcn", dtype="f64")),
        (["--preprocess", "lowpass=5"], dict(preprocess="lowpass=5")),
        (["--method", "ocsc-paper", "--update-iters", 7], dict(method="ocsc-paper", update_iters=7)),
        (["--method", "cbpdn", "--passes", 2, "--pass-code-iters", 3], dict(method="cbpdn", passes=2, pass_code_iters=3)),
        (["--forgetting", 1, "--sweeps", 3, "--no-reseed"], dict(forgetting=1, sweeps=3, reseed=False)),
    ]
    for options, more in cases:
        program("learn", "x.npy", "--out", "m.safetensors", *SMALL, *options)
        theirs = ocsc.load(tmp_path / "m.safetensors")
        ours = OnlineCSC(**{**params, **more}).fit(images)
        assert np.array_equal(ours.filters_, theirs.filters_), options
        ours.save(tmp_path / "ours.safetensors")
        assert (tmp_path / "ours.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes(), options
    program("learn", "x.npy", "--out", "m.safetensors", *SMALL[:4], "--beta-ratio", 0.2)
    ours = OnlineCSC(n_filters=5, filter_shape=(5, 5), beta_ratio=0.2).fit(images)
    theirs = ocsc.load(tmp_path / "m.safetensors")
    assert ours.beta_ == theirs.beta_ and np.array_equal(ours.filters_, theirs.filters_)


def test_models_say_how_many_samples_they_were_learned_from(program, tmp_path):
    images = smooth(5)
    said = lambda name: json.loads(program("info", name, "--json"))["samples"]  # noqa: E731
    model = OnlineCSC(n_filters=3, filter_shape=(5, 5), beta=0.3).fit(images)
    model.save(tmp_path / "m.safetensors")
    model.save(tmp_path / "c.safetensors", checkpoint=True)
    ocsc.load(tmp_path / "m.safetensors").save(tmp_path / "again.safetensors")
    assert [said(name) for name in ("m.safetensors", "c.safetensors", "again.safetensors")] == [5, 5, 5]
    # Of a stream nobody knows.
    model.partial_fit(images[:2]).save(tmp_path / "more.safetensors")
    assert said("more.safetensors") is None


def test_a_model_of_the_package_is_used_by_the_program(program, tmp_path):
    images = smooth(4)
    np.save(tmp_path / "x.npy", images)
    model = OnlineCSC(n_filters=5, filter_shape=(5, 5), beta=0.3).fit(images)
    ocsc.save(model, tmp_path / "m.safetensors")
    evaluated = json.loads(program("evaluate", "m.safetensors", "x.npy", "--json"))
    ours = model.evaluate(images)
    for name in ("samples", "objective", "data_term", "l1", "gap", "psnr", "psnr_peak", "nonzeros"):
        assert evaluated[name] == ours[name], name
    program("code", "m.safetensors", "x.npy", "--out", "codes")
    theirs, codes = Codes.load(tmp_path / "codes"), model.transform(images)
    assert np.array_equal(theirs.to_dense(), codes.to_dense())
    assert np.array_equal(theirs.objective, codes.objective) and np.array_equal(theirs.gap, codes.gap)


def test_codes_of_the_package_are_reconstructed_by_the_program(program, tmp_path):
    images = smooth(3)
    model = OnlineCSC(n_filters=5, filter_shape=(5, 5), beta=0.3).fit(images)
    model.save(tmp_path / "m.safetensors")
    codes = model.transform(images)
    codes.save(tmp_path / "codes")
    program("reconstruct", "m.safetensors", "codes", "--out", "back", "--format", "npy")
    back = model.inverse_transform(codes)
    for i, image in enumerate(back):
        assert np.allclose(np.load(tmp_path / "back" / f"sample-{i:06}.npy"), image, atol=1e-6)


def test_filters_of_the_samples_own(program, tmp_path):
    images = smooth(4)
    np.save(tmp_path / "x.npy", images)
    params = dict(n_filters=5, filter_shape=(5, 5), beta=0.3, method="scsc", base_filters=2)
    program("learn", "x.npy", "--out", "m.safetensors", *SMALL, "--method", "scsc", "--base-filters", 2)
    model = OnlineCSC(**params).fit(images)
    assert np.array_equal(model.filters_, ocsc.load(tmp_path / "m.safetensors").filters_)
    codes = model.transform(images)
    assert np.isclose(codes.objective.mean(), model.evaluate(images, tol=model.tol)["objective"], rtol=1e-12)
    program("code", "m.safetensors", "x.npy", "--out", "codes")
    theirs = Codes.load(tmp_path / "codes")
    for one, other, image in zip(codes, theirs, images):
        assert np.array_equal(one.to_dense(), other.to_dense()) and one.objective == other.objective
        assert np.array_equal(one.facts["base"], other.facts["base"])
        assert np.array_equal(one.facts["mixing"], other.facts["mixing"])
        own = one.own_filters(model)
        combined = np.tensordot(one.facts["mixing"], model.filters_[one.facts["base"]].astype(float), 1)
        assert np.abs(own - combined).max() < 1e-6 and np.abs(own - model.filters_).max() > 0.01
        # What is left over is what the objective counts.
        left = image - model.inverse_transform(one)
        assert np.isclose(0.5 * (left**2).sum() + 0.3 * np.abs(one.value).sum(), one.objective, rtol=1e-5)
    back = model.inverse_transform(codes)
    assert np.array_equal(back, model.inverse_transform(theirs)) and np.array_equal(back, ocsc.reconstruct(codes, model.filters_))
    # Through the package's files to the program.
    for name in ("all.npz", "folder"):
        codes.save(tmp_path / name)
        assert np.array_equal(model.inverse_transform(Codes.load(tmp_path / name)), back)
    program("reconstruct", "m.safetensors", "folder", "--format", "npy", "--out", "back")
    program("verify", "m.safetensors", "x.npy", "codes")
    assert np.array_equal(np.load(tmp_path / "back" / "sample-000002.npy"), back[2].astype(np.float32))
    assert len(codes[1:3].events()) == len(theirs[1:3].events(filters=model)) > 0


def test_learning_goes_on_across_the_two(program, tmp_path):
    images = smooth(6)
    np.save(tmp_path / "x.npy", images)
    learned = OnlineCSC(n_filters=5, filter_shape=(5, 5), beta=0.3, passes=2).fit(images)
    half = OnlineCSC(n_filters=5, filter_shape=(5, 5), beta=0.3).fit(images)
    half.save(tmp_path / "half.safetensors", checkpoint=True)
    program("learn", "x.npy", "--resume", "half.safetensors", "--passes", 2, "--out", "m.safetensors")
    assert np.array_equal(ocsc.load(tmp_path / "m.safetensors").filters_, learned.filters_)
    program("learn", "x.npy", "--out", "c.safetensors", *SMALL, "--checkpoint-every", 100)
    theirs = ocsc.load(tmp_path / "c.safetensors")
    assert theirs.n_steps_ == 6
    assert np.array_equal(theirs.partial_fit(images).filters_, half.partial_fit(images).filters_)


def test_colour_models(program, tmp_path):
    images = np.stack([smooth(3), smooth(3, seed=1)], axis=1)
    np.save(tmp_path / "x.npy", images)
    program("learn", "x.npy", "--axes", "NCHW", "--out", "m.safetensors", *SMALL)
    model = ocsc.load(tmp_path / "m.safetensors", axes="NCHW")
    ours = OnlineCSC(n_filters=5, filter_shape=(5, 5), beta=0.3, axes="NCHW").fit(images)
    assert np.array_equal(model.filters_, ours.filters_)
    assert model.inverse_transform(model.transform(images)).shape == images.shape
    # Set later, they are heeded as well.
    later = ocsc.load(tmp_path / "m.safetensors").set_params(axes="NHWC")
    back = later.inverse_transform(later.transform(images.transpose(0, 2, 3, 1)))
    assert np.allclose(back, model.inverse_transform(model.transform(images)).transpose(0, 2, 3, 1))
    with pytest.raises(ValueError, match="axes: expected a C for the 2 channels that the filters have, found 'NHW'"):
        later.set_params(axes="NHW").inverse_transform(model.transform(images))


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="x.safetensors: model file: expected safetensors"):
        ocsc.load(tmp_path / "x.safetensors")
    with pytest.raises(FileNotFoundError, match="absent.safetensors"):
        ocsc.load(tmp_path / "absent.safetensors")
    model = OnlineCSC(n_filters=3, filter_shape=(5, 5)).fit(smooth(1))
    with pytest.raises(FileNotFoundError, match="folder .*nowhere does not exist"):
        model.save(tmp_path / "nowhere" / "m.safetensors")
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(TypeError, match="load: expected parameters of OnlineCSC, found colour"):
        ocsc.load(tmp_path / "m.safetensors", colour=1)
    with pytest.raises(ValueError, match="axes: expected 2 spatial axes"):
        ocsc.load(tmp_path / "m.safetensors", axes="NW")
