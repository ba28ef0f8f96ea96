"""Functions without an estimator, against textbook formulas."""

import numpy as np
import pytest
from conftest import smooth

import ocsc
from ocsc import metrics


def unit_filters(k=4, side=5, seed=0):
    filters = np.random.default_rng(seed).standard_normal((k, side, side))
    return filters / np.linalg.norm(filters.reshape(k, -1), axis=1)[:, None, None]


def correlations(image, filters):
    """D^T x on the circle, by shifts."""
    shifts = lambda f: sum(f[y, x] * np.roll(image, (-y, -x), (0, 1)) for y, x in np.ndindex(f.shape))  # noqa: E731
    return np.stack([shifts(f) for f in filters])


def test_beta_max_is_the_largest_correlation():
    X, filters = smooth(3, dtype=float), unit_filters()
    expected = [np.abs(correlations(x, filters)).max() for x in X]
    assert np.allclose(ocsc.beta_max(X, filters, dtype="f64"), expected)
    beta = max(expected)
    assert ocsc.code(X, filters, 1.0001 * beta).nonzeros.sum() == 0
    assert ocsc.code(X, filters, 0.9 * beta).nonzeros.sum() > 0


def test_codes_are_optimal():
    X, filters, beta = smooth(2, dtype=float), unit_filters(), 0.4
    codes = ocsc.code(X, filters, beta, tol=1e-8, dtype="f64")
    for x, code in zip(X, codes):
        z = code.to_dense()
        d = correlations(x - ocsc.reconstruct(code, filters), filters)
        assert np.abs(d).max() <= beta * (1 + 1e-3)
        assert np.allclose(d[z != 0], beta * np.sign(z[z != 0]), atol=1e-3)


def test_reconstruction_is_a_sum_of_shifted_filters():
    filters = unit_filters()
    code = ocsc.Code([1, 3], [[2, 22], [7, 7]], [2.0, -1.0], (4, 24, 24))
    expected = np.zeros((24, 24))
    for k, (y, x), v in zip(code.filter, code.position, code.value):
        for dy, dx in np.ndindex(5, 5):
            expected[(y + dy) % 24, (x + dx) % 24] += v * filters[k, dy, dx]
    assert np.allclose(ocsc.reconstruct(code, filters), expected)


def test_colour_filters():
    filters = np.random.default_rng(0).standard_normal((3, 2, 5, 5))
    filters /= np.linalg.norm(filters.reshape(3, -1), axis=1)[:, None, None, None]
    X = np.stack([smooth(2), smooth(2, seed=1)], axis=-1)
    codes = ocsc.code(X, filters, 0.5, axes="NHWC")
    assert codes.shape == (2, 3, 24, 24)
    assert ocsc.reconstruct(codes, filters, axes="NHWC").shape == X.shape
    with pytest.raises(ValueError, match="filters: expected 2 spatial axes"):
        ocsc.code(X, np.ones((3, 5)), axes="NHWC")


def test_filters_above_the_unit_ball_are_refused():
    with pytest.raises(ValueError, match="filter 0: expected a Euclidean norm of at most 1"):
        ocsc.code(smooth(1), 2 * unit_filters(), 0.5)
    with pytest.raises(ValueError, match="filters: Complex data not supported"):
        ocsc.code(smooth(1), 1j * unit_filters(), 0.5)


def test_unreached_tolerances_warn():
    with pytest.warns(ocsc.ConvergenceWarning, match="2 of 2 codes did not reach the tolerance 1e-07"):
        codes = ocsc.code(smooth(2), unit_filters(), 0.01, tol=1e-7, max_rounds=1)
    assert codes.gap.min() > 1e-7
    for dtype in ("f32", "f64"):
        with pytest.warns(ocsc.ConvergenceWarning) as told:
            ocsc.code(smooth(2), unit_filters(), 0.01, tol=1e-7, max_rounds=1, dtype=dtype)
        assert ("dtype='f64'" in str(told[0].message)) == (dtype == "f32")


def test_preprocess():
    X = smooth(3, dtype=float) + 5
    assert np.allclose(ocsc.preprocess(X, "mean").mean((1, 2)), 0)
    assert np.allclose(ocsc.preprocess(X, "scale=2"), X / 2)
    assert ocsc.preprocess(X, "none").shape == X.shape
    colour = np.stack([X, X, X], axis=1)
    assert np.allclose(ocsc.preprocess(colour, "gray", axes="NCHW")[:, 0], X, rtol=1e-3)
    lowpass = ocsc.preprocess(X, "lowpass=5")
    assert np.abs(lowpass.mean((1, 2))).max() < 0.1
    assert [x.shape for x in ocsc.preprocess([X[0], X[1][:20]], "lcn")] == [(24, 24), (20, 24)]
    assert np.array_equal(ocsc.preprocess(X[0], "mean", axes="HW"), ocsc.preprocess(X, "mean")[0])
    assert ocsc.preprocess(X[:1], "mean", axes="HW").shape == (1, 24, 24)
    with pytest.raises(ValueError, match="preprocess: expected none, or steps"):
        ocsc.preprocess(X, "sharpen")


def test_metrics():
    x, y = smooth(2, dtype=float)
    assert metrics.mse(x, y) == pytest.approx(((x - y) ** 2).mean())
    assert metrics.psnr(x, y, 3.0) == pytest.approx(10 * np.log10(9 / ((x - y) ** 2).mean()))
    assert metrics.psnr(x, x, 1.0) == np.inf
    assert metrics.ssim(x, x, 1.0) == pytest.approx(1) and metrics.ssim(x, y, 1.0) < 0.9
    seen = np.random.default_rng(0).random(x.shape) > 0.5
    assert metrics.mse(np.ma.masked_array(x, ~seen), y) == pytest.approx(((x - y)[seen] ** 2).mean())
    assert metrics.mse(np.stack([x, y]), np.stack([y, y]), axes="CHW") == pytest.approx(((x - y) ** 2).mean() / 2)
    assert metrics.value_range([x, y]) == max(x.max(), y.max()) - min(x.min(), y.min())
    code = ocsc.Code([0], [[0, 0]], [1.0], (2, 10, 10))
    assert metrics.sparsity(code) == 1 / 200
    with pytest.raises(ValueError, match="equal shapes"):
        metrics.mse(x, y[:5])
    with pytest.raises(ValueError, match="peak: expected a positive finite number"):
        metrics.psnr(x, y, 0.0)
    masked = np.ma.masked_array(y, ~seen)
    assert metrics.mse(x, masked) == pytest.approx(((x - np.where(seen, y, 0)) ** 2).mean()), "as documented"
    with pytest.raises(ValueError, match="axes: expected those of one sample, without N, found 'NHW'"):
        metrics.psnr(np.stack([x, y]), np.stack([x, y]), 1.0, axes="NHW")
    with pytest.raises(ValueError, match="needs axes"):
        metrics.mse(np.zeros((3, 9, 9)), np.zeros((3, 9, 9)))
