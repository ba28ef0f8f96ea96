"""What filters may be, in Python's words."""

import numpy as np
import pytest

import ocsc


@pytest.fixture
def images():
    return np.random.default_rng(0).standard_normal((6, 16, 16)).astype(np.float32)


def test_signs_means_and_scales(images):
    base = dict(n_filters=4, filter_shape=(5, 5), beta=0.5)
    assert (ocsc.OnlineCSC(**base, filters_nonnegative=True).fit(images).filters_ >= 0).all()
    means = ocsc.OnlineCSC(**base, zero_mean=True).fit(images).filters_.mean(axis=(1, 2))
    assert np.abs(means).max() < 1e-6
    for scales in [(3, 5), [(3, 3), (5, 5)]]:
        filters = ocsc.OnlineCSC(**base, scales=scales).fit(images).filters_
        assert filters[:2, 1:4, 1:4].any() and not filters[:2, 0].any() and filters[2:, 0].any()
    with pytest.raises(ValueError, match="zero_mean: expected filters that may have negative values"):
        ocsc.OnlineCSC(**base, zero_mean=True, filters_nonnegative=True).fit(images)
    with pytest.raises(ValueError, match="scales: expected lengths from 1 up"):
        ocsc.OnlineCSC(**base, scales=(3, 7)).fit(images)


def test_rank_one(images):
    colour = np.stack([images, -0.5 * images, images[:, ::-1]], axis=1)
    model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.5, rank1=True, axes="NCHW").fit(colour)
    values = np.linalg.svd(model.filters_.reshape(4, 3, 25), compute_uv=False)
    assert (values[:, 1] < 1e-5 * values[:, 0]).all()


def test_fixed_filters_need_filters(images):
    given = np.random.default_rng(1).standard_normal((3, 5, 5)) / 10
    model = ocsc.OnlineCSC(n_filters=3, filter_shape=(5, 5), beta=0.5, init=given, fixed_filters=2, dtype="f64").fit(images)
    assert np.array_equal(model.filters_[:2], given[:2]) and not np.array_equal(model.filters_[2], given[2])
    with pytest.raises(ValueError, match="fixed_filters: expected 0, or a given initial dictionary"):
        ocsc.OnlineCSC(n_filters=3, filter_shape=(5, 5), fixed_filters=1).fit(images)


def test_forgetting_is_an_exponent_or_a_constant(images, tmp_path):
    for forgetting in ["auto", 3.0, "constant:0.99"]:
        model = ocsc.OnlineCSC(n_filters=3, filter_shape=(5, 5), beta=0.5, forgetting=forgetting, recenter=True).fit(images)
        model.save(tmp_path / "model.safetensors")
        assert ocsc.load(tmp_path / "model.safetensors").forgetting == forgetting
    with pytest.raises(ValueError, match="forgetting: expected auto, an exponent from 1 up, or constant:WEIGHT"):
        ocsc.OnlineCSC(n_filters=3, filter_shape=(5, 5), forgetting="constant:1.5").fit(images)


def test_gray_filters_on_every_channel():
    rng = np.random.default_rng(3)
    edge = np.cumsum(rng.standard_normal((4, 18, 20)), axis=2)
    X = np.stack([edge, 0.5 * edge, -edge], axis=1) + 0.05 * rng.standard_normal((4, 3, 18, 20))
    settings = dict(n_filters=5, filter_shape=(5, 5), beta=0.3, preprocess="lowpass=3,scale", axes="NCHW", boundary="free")
    for joint in (False, True):
        model = ocsc.OnlineCSC(**settings, per_channel=True, joint=joint, passes=2).fit(X)
        assert model.filters_.shape == (5, 1, 5, 5)
        codes = model.transform(X)
        assert codes[0].shape == (5, 3, 22, 24) and codes.gap.max() <= 0.01
        back = model.inverse_transform(codes, original=X)
        assert back.shape == X.shape and np.mean((back - X) ** 2) < 0.1 * X.var()
        assert model.inverse_transform(codes).shape == X.shape
        if joint:
            dense = codes[0].to_dense() != 0
            assert np.array_equal(dense.any(axis=1), dense.all(axis=1)), "channels are zero together"
    same = ocsc.code(X, model.filters_, 0.3, preprocess="lowpass=3,scale,per-channel", axes="NCHW", boundary="free", joint=True)
    assert np.allclose(same.objective, codes.objective)
    with pytest.raises(ValueError, match="joint: expected false, or the step per-channel"):
        ocsc.OnlineCSC(**settings, joint=True).fit(X)


def test_signals_of_several_channels_one_by_one():
    X = np.random.default_rng(4).standard_normal((3, 2, 60))
    model = ocsc.OnlineCSC(n_filters=3, filter_shape=(7,), beta=0.5, axes="NCW", per_channel=True).fit(X)
    assert model.filters_.shape == (3, 1, 7)
    codes = model.transform(X)
    assert codes[0].shape == (3, 2, 60)
    assert model.inverse_transform(codes).shape == X.shape
