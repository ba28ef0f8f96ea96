"""What the estimator learns, and what it says about it."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from conftest import smooth

import ocsc
from ocsc import OnlineCSC

SMALL = dict(n_filters=6, filter_shape=(5, 5), beta=0.3)


def test_learns_filters_that_represent_new_images_better():
    train, test = smooth(30), smooth(6, seed=1)
    start = OnlineCSC(**SMALL, passes=0).fit(train)
    model = OnlineCSC(**SMALL).fit(train)
    # Both are negative.
    assert model.score(test) > 0.95 * start.score(test)


def test_attributes(images):
    model = OnlineCSC(**SMALL, passes=2, batch_size=2).fit(images)
    assert model.filters_.shape == (6, 5, 5) and model.filters_.dtype == np.float32
    assert np.all(np.linalg.norm(model.filters_.reshape(6, -1), axis=1) <= 1 + 1e-5)
    assert (model.n_steps_, model.n_samples_seen_, model.beta_) == (6, 12, 0.3)
    history = model.history_
    assert list(history["step"]) == [1, 2, 3, 4, 5, 6]
    assert list(history["pass"]) == [1, 1, 1, 2, 2, 2]
    assert list(history["samples"]) == [2, 4, 6, 8, 10, 12]
    assert np.all(history["gap"] <= model.tol) and np.all(history["nonzeros"] > 0)
    assert model.objective_ == pytest.approx(history["objective"][3:].mean())
    assert model.gap_ == history["gap"][3:].max()
    assert not hasattr(model, "n_features_in_")
    signals = OnlineCSC(n_filters=3, filter_shape=4, beta=0.3).fit(images[:, 0])
    assert signals.n_features_in_ == 24 and signals.filters_.shape == (3, 4)


@pytest.mark.parametrize("method", [name for name, _ in ocsc.methods()])
def test_every_method(method, images):
    model = OnlineCSC(**SMALL, method=method, passes=2).fit(images)
    assert model.score(images) > OnlineCSC(**SMALL, method=method, passes=0).fit(images).score(images)
    assert model.transform(images).gap.max() <= model.tol


def test_fit_of_a_stream_is_repeated_partial_fit(images):
    once = OnlineCSC(**SMALL).fit(image for image in images)
    parts = OnlineCSC(**SMALL)
    for image in images:
        parts.partial_fit(image)
    whole = OnlineCSC(**SMALL).partial_fit(images)
    assert np.array_equal(once.filters_, parts.filters_) and np.array_equal(once.filters_, whole.filters_)
    assert parts.n_steps_ == 6 and list(parts.history_["step"]) == [1, 2, 3, 4, 5, 6]


def test_fit_begins_anew(images):
    model = OnlineCSC(**SMALL).fit(images)
    filters = model.filters_
    assert np.array_equal(model.fit(images).filters_, filters) and model.n_steps_ == 6


def test_partial_fit_goes_on_from_fit_checkpoints_and_pickles_bit_for_bit(images, tmp_path):
    model = OnlineCSC(**SMALL).fit(images)
    model.save(tmp_path / "m.safetensors", checkpoint=True)
    others = [ocsc.load(tmp_path / "m.safetensors"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    more = smooth(3, seed=2)
    expected = model.partial_fit(more).filters_
    for other in others:
        assert np.array_equal(other.partial_fit(more).filters_, expected)
        assert other.n_steps_ == 9


def test_partial_fit_refuses_batch_methods(images):
    with pytest.raises(ValueError, match="learns online for partial_fit, found 'fcsc'"):
        OnlineCSC(**SMALL, method="fcsc").partial_fit(images)


def test_transform_certifies_and_inverts(images):
    model = OnlineCSC(**SMALL, passes=3, tol=1e-3).fit(images)
    codes = model.transform(images)
    back = model.inverse_transform(codes)
    assert back.shape == images.shape
    data_term = 0.5 * ((images - back) ** 2).sum((1, 2))
    l1 = np.array([np.abs(code.value).sum() for code in codes])
    assert np.allclose(data_term + model.beta_ * l1, codes.objective, rtol=1e-4)
    assert np.all(codes.gap <= 1e-3)
    assert np.allclose(model.inverse_transform(codes[2]), back[2])
    assert model.fit_transform(images).nonzeros.sum() == codes.nonzeros.sum()


def test_score_and_evaluate(images):
    model = OnlineCSC(**SMALL).fit(images)
    evaluation = model.evaluate(images)
    assert model.score(images) == -evaluation["objective"]
    assert evaluation["objective"] == pytest.approx(evaluation["data_term"] + 0.3 * evaluation["l1"])
    assert evaluation["samples"] == 6 and evaluation["gap"] <= 0.003
    assert evaluation["psnr_peak"] == pytest.approx(ocsc.metrics.value_range(images))


def test_beta_ratio(images):
    settings = dict(n_filters=6, filter_shape=(5, 5), passes=0)
    quarter = OnlineCSC(**settings, beta_ratio=0.25).fit(images).beta_
    # Neither the seed nor the start matters, and by default it is a tenth.
    for other in (dict(random_state=3), dict(init="patches"), dict(init=np.eye(5)[None] / 3, n_filters=1)):
        assert OnlineCSC(**{**settings, **other}, beta_ratio=0.25).fit(images).beta_ == quarter
    assert OnlineCSC(**settings).fit(images).beta_ == pytest.approx(0.4 * quarter)
    assert OnlineCSC(**settings).fit(images * 1e-12).beta_ == pytest.approx(0.4e-12 * quarter, rel=1e-5)
    assert OnlineCSC(**settings, beta=0.3).fit(images).beta_ == 0.3
    assert OnlineCSC(**settings, preset="paper").fit(images).beta_ == 1.0
    assert OnlineCSC(**settings, preset="paper", beta_ratio=0.25).fit(images).beta_ == quarter
    with pytest.raises(ValueError, match="beta_ratio: expected None beside beta=1.0"):
        OnlineCSC(beta=1.0, beta_ratio=0.1).fit(images)
    with pytest.raises(ValueError, match="preset: expected 'paper' or None"):
        OnlineCSC(preset="print").fit(images)
    with pytest.raises(ValueError, match="beta_ratio: expected a number above 0"):
        OnlineCSC(beta_ratio=-1).fit(images)


def test_boundaries_give_codes_of_their_shapes(images):
    for boundary, side in [("circular", 24), ("zero", 28), ("free", 28)]:
        model = OnlineCSC(**SMALL, boundary=boundary).fit(images)
        codes = model.transform(images)
        assert codes.shape == (6, 6, side, side)
        assert model.inverse_transform(codes).shape == images.shape


def test_init_from_an_array_and_from_patches(images):
    rng = np.random.default_rng(3)
    start = rng.standard_normal((4, 5, 5))
    model = OnlineCSC(filter_shape=(5, 5), init=start, passes=0).fit(images)
    unit = start / np.linalg.norm(start.reshape(4, -1), axis=1)[:, None, None]
    assert np.allclose(model.filters_, unit, atol=1e-6)
    patches = OnlineCSC(**SMALL, init="patches", passes=0).fit(images)
    windows = np.lib.stride_tricks.sliding_window_view(images, (5, 5), axis=(1, 2)).reshape(-1, 25)
    windows = windows / np.linalg.norm(windows, axis=1, keepdims=True)
    assert np.allclose((patches.filters_.reshape(6, -1) @ windows.T).max(1), 1, atol=1e-4)
    with pytest.raises(ValueError, match="init: expected random, patches"):
        OnlineCSC(init="zeros").fit(images)
    with pytest.raises(ValueError, match="init: expected random, patches"):
        OnlineCSC(init=np.zeros((3, 4))).fit(images)


def test_random_state(images):
    filters = [OnlineCSC(**SMALL, random_state=state, passes=0).fit(images).filters_ for state in (0, 1, None, None)]
    assert not any(np.array_equal(a, b) for i, a in enumerate(filters) for b in filters[:i])
    for state in (np.random.RandomState, np.random.default_rng):
        a, b = (OnlineCSC(**SMALL, random_state=state(5), passes=0).fit(images).filters_ for _ in range(2))
        assert np.array_equal(a, b)


def test_dtype(images):
    wide = images.astype(np.float64)
    kinds = [("f32", wide, np.float32), ("f64", images, np.float64), ("auto", wide, np.float64)]
    kinds += [("auto", images, np.float32), (np.float64, images, np.float64), ("auto", np.uint8(images * 9 + 99), np.float32)]
    for dtype, X, expected in kinds:
        model = OnlineCSC(**SMALL, dtype=dtype).fit(X)
        assert model.filters_.dtype == expected and model.transform(X).value.dtype == expected
    with pytest.raises(ValueError, match="dtype: expected 'f32', 'f64' or 'auto'"):
        OnlineCSC(dtype="f16").fit(images)


def test_preprocessing_and_the_way_back():
    X = 100 + 20 * smooth(4, dtype=np.float64)
    model = OnlineCSC(**SMALL, preprocess="mean,scale", dtype="f64", passes=3).fit(X)
    codes = model.transform(X)
    prepared = ocsc.preprocess(X, "mean,scale")
    assert np.allclose(prepared.mean((1, 2)), 0) and np.allclose(prepared.std((1, 2)), 1)
    inside = model.inverse_transform(codes)
    assert np.abs(inside - prepared).mean() < 0.5
    back = model.inverse_transform(codes, original=X)
    assert np.allclose(back, inside * X.std((1, 2), keepdims=True) + X.mean((1, 2), keepdims=True))
    with pytest.raises(ValueError, match="original: expected 4 samples"):
        model.inverse_transform(codes, original=X[:2])


def test_gray_values_of_colours_are_learned_from():
    X = 0.5 + 0.1 * np.stack([smooth(4), smooth(4, seed=1), smooth(4, seed=2)], axis=-1)
    for steps in ("gray", "gray,lcn,taper"):
        gray = ocsc.preprocess(X, steps, axes="NHWC")[..., 0]
        expected = OnlineCSC(**SMALL).fit(gray).filters_
        model = OnlineCSC(**SMALL, axes="NHWC", preprocess=steps).fit(X)
        assert model.filters_.shape == (6, 1, 5, 5) and np.array_equal(model.filters_[:, 0], expected)
        assert model.inverse_transform(model.transform(X)).shape == (4, 24, 24, 1)
        whole = OnlineCSC(**SMALL, axes="HWC", preprocess=steps)
        assert np.array_equal(whole.fit(list(X)).filters_[:, 0], expected)
        assert np.array_equal(whole.fit(iter(X)).filters_[:, 0], OnlineCSC(**SMALL).fit(iter(gray)).filters_)
        mixed = [X[0], X[1][..., :1], X[2]]
        assert whole.fit(mixed).n_steps_ == 3


def test_filters_to_start_from_say_how_many_there_are(images):
    model = OnlineCSC(init=np.ones((4, 3, 3)), beta=0.3).fit(images)
    assert model.filters_.shape == (4, 3, 3)
    assert OnlineCSC(4, 3, init=np.ones((4, 3, 3)), axes="NHW", beta=0.3).fit(images).filters_.shape == (4, 3, 3)
    assert OnlineCSC(4, [3, 3], init=np.ones((4, 3, 3)), beta=0.3).fit(images).filters_.shape == (4, 3, 3)


def test_codes_that_miss_the_tolerance_warn_once_at_the_users_line(images):
    hard = dict(SMALL, tol=1e-9, max_rounds=2)
    for learn in (OnlineCSC.fit, OnlineCSC.partial_fit):
        with pytest.warns(ocsc.ConvergenceWarning, match=r"codes of 6 steps did not reach the tolerance 1e-09 \(the worst") as told:
            learn(OnlineCSC(**hard), images)
        missed = [warning for warning in told if warning.category is ocsc.ConvergenceWarning]
        assert len(missed) == 1 and {warning.filename for warning in told} == {__file__}
    with pytest.warns(ocsc.ConvergenceWarning) as told:
        OnlineCSC(**hard).fit_transform(images)
    missed = [warning for warning in told if warning.category is ocsc.ConvergenceWarning]
    assert len(missed) == 2 and {warning.filename for warning in told} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ocsc.SparsityWarning)
        for method in ("ocsc", "cbpdn", "osc"):
            OnlineCSC(**SMALL, method=method).fit(images)


def test_weights_and_non_negative(images):
    model = OnlineCSC(**SMALL, non_negative=True, weights=[1, 1, 1, 1, 1, 1e6]).fit(images)
    codes = model.transform(images)
    assert codes.value.min() > 0 and 5 not in codes.filter


def test_stop_tol_and_time_limit(images):
    quick = OnlineCSC(**SMALL, passes=500, stop_tol=0.2).fit(images)
    assert quick.n_steps_ < 500 * 6
    late = OnlineCSC(**SMALL, passes=10**6, time_limit=0.05).fit(images)
    assert 0 < late.n_steps_ < 10**6


def test_not_fitted():
    model = OnlineCSC()
    for ask in (lambda: model.filters_, lambda: model.transform([]), lambda: model.score([]), lambda: model.save("x")):
        with pytest.raises(ocsc.NotFittedError, match="not fitted yet"):
            ask()
    assert not hasattr(model, "filters_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(n_filters=0), "n_filters: expected at least 1, found 0"),
        (dict(n_filters="many"), "n_filters: expected a whole number from 0 up, found 'many'"),
        (dict(n_filters=2.5), "n_filters: expected a whole number from 0 up, found 2.5"),
        (dict(beta=-1), "beta: expected a finite number above 0, found -1"),
        (dict(n_filters=None), "n_filters: expected a whole number from 0 up, found None"),
        (dict(n_filters=True), "n_filters: expected a whole number from 0 up, found True"),
        (dict(beta=float("nan")), "beta: expected a finite number, found nan"),
        (dict(reseed=None), "reseed: expected True or False, found None"),
        (dict(preprocess=None), "preprocess: expected 'none', or steps such as 'mean,scale', found None"),
        (dict(method=None), "method: expected a word such as 'ocsc', found None"),
        (dict(method="best"), "method: expected .*ocsc.*, found 'best'"),
        (dict(boundary="open"), "boundary: expected .*circular.*, found 'open'"),
        (dict(filter_shape=(30, 30)), "expected at least the size 30x30 of the filters"),
        (dict(filter_shape=(5, 5, 5)), r"X: expected 4 axes \(N, D, H, W\), found 3"),
        (dict(filter_shape=(5, 5, 5, 5)), r"filter_shape: expected one length .* found \(5, 5, 5, 5\)"),
        (dict(filter_shape=()), r"filter_shape: expected one length .* found \(\)"),
        (dict(threads=0), "threads: expected a whole number from 1 to 1024"),
        (dict(preprocess="blur"), "preprocess: expected none, or steps of gray"),
        (dict(axes="NHX"), "axes `NHX`: expected letters"),
        (dict(memory_limit="much"), "memory_limit: expected a size such as '500MB'"),
        (dict(memory_limit="1.2.3GB"), "memory_limit: expected a size such as '500MB'"),
        (dict(dtype=None), "dtype: expected 'f32', 'f64' or 'auto' .* found None"),
        (dict(init=np.ones((6, 5, 5)) * 1j), "init: Complex data not supported"),
        (dict(init=np.ones((8, 5, 5))), "n_filters: expected 8, as the filters of init have, found 6"),
        (dict(init=np.ones((6, 7, 7))), r"filter_shape: expected \(7, 7\), as the filters of init have, found \(5, 5\)"),
        (dict(stop_tol=-1), "stop_tol: expected a number above 0"),
        (dict(random_state=-3), "random_state: expected a whole number from 0 up"),
        (dict(method="fcsc", boundary="zero"), "boundary: expected circular for the method `fcsc`"),
    ],
)
def test_bad_settings_are_refused_by_name(params, message, images):
    model = OnlineCSC(**{**SMALL, **params})
    with pytest.raises(ValueError, match=message):
        model.fit(images)
    assert not hasattr(model, "filters_")


def test_other_types_and_memory(images):
    with pytest.raises(TypeError, match="beta: expected a finite number"):
        OnlineCSC(**{**SMALL, "beta": 1j}).fit(images)
    with pytest.raises(TypeError, match="axes: expected letters such as 'NHWC', found 3"):
        OnlineCSC(**SMALL, axes=3).fit(images)
    for X in (images, iter(images)):
        with pytest.raises(MemoryError, match="1000000000 filters of 5x5"):
            OnlineCSC(**{**SMALL, "n_filters": 10**9}).fit(X)
    for X in (images, iter(images)):
        with pytest.raises(MemoryError, match="need .* more than the 1.0 MB that the memory limit allows"):
            OnlineCSC(**SMALL, memory_limit="1MB").fit(X)
    with pytest.raises(ValueError, match=r"X\[1\]: expected 24x24 as X\[0\] has, for the method `ocsc-paper` .* found 20x24"):
        OnlineCSC(**SMALL, method="ocsc-paper").fit([images[0], images[1][:20]])


def test_parameters():
    model = OnlineCSC(beta=2.0)
    assert model.get_params()["beta"] == 2.0 and model.set_params(beta=3.0) is model and model.beta == 3.0
    with pytest.raises(ValueError, match="colour: expected a parameter of OnlineCSC"):
        model.set_params(colour="red")
    assert repr(OnlineCSC(n_filters=5, beta_ratio=0.1)) == "OnlineCSC(n_filters=5, beta_ratio=0.1)"
    assert repr(OnlineCSC(init=np.zeros((12, 7, 7)))) == "OnlineCSC(init=ndarray(12, 7, 7))"


def test_pickles_are_versioned(images):
    model = OnlineCSC(**SMALL).fit(images)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.history_, model.history_) and again.get_params() == model.get_params()
    assert not hasattr(pickle.loads(pickle.dumps(OnlineCSC())), "filters_")
    state = model.__getstate__()
    state["ocsc_pickle"] = 99
    with pytest.raises(ValueError, match="pickle: expected version 1 .* found version 99 .*ocsc.save"):
        OnlineCSC.__new__(OnlineCSC).__setstate__(state)
    state["ocsc_pickle"], state["learner"] = 1, b"damaged"
    with pytest.raises(ValueError, match="pickle: model file: expected safetensors"):
        OnlineCSC.__new__(OnlineCSC).__setstate__(state)
