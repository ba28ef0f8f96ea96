"""Penalties, losses, weights and budgets, against plain numpy and scikit-learn on explicit matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ocsc


def filters(k: int = 3, side: int = 4) -> np.ndarray[Any, Any]:
    d = np.random.default_rng(1).standard_normal((k, side, side))
    return d / np.sqrt((d**2).sum((1, 2), keepdims=True))


def matrix(d: np.ndarray[Any, Any], shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """D as an explicit matrix: column (k, y, x) is filter k with its first corner at (y, x), wrapping around."""
    columns = []
    for filt in d:
        image = np.zeros(shape)
        image[: filt.shape[0], : filt.shape[1]] = filt
        columns += [np.roll(image, (y, x), (0, 1)).ravel() for y in range(shape[0]) for x in range(shape[1])]
    return np.array(columns).T


def picture(shape: tuple[int, int] = (12, 13)) -> np.ndarray[Any, Any]:
    return np.random.default_rng(2).standard_normal(shape)


def dense(codes: ocsc.Codes) -> np.ndarray[Any, Any]:
    return np.asarray(codes[0].to_dense()).ravel()


SETTINGS: dict[str, Any] = {"tol": 1e-7, "dtype": "f64"}


def proximal(
    a: np.ndarray[Any, Any], x: np.ndarray[Any, Any], weights: Any, mu: float = 0.0, counts: Any = 1.0, steps: int = 20000
) -> np.ndarray[Any, Any]:
    """Minimises 1/2 sum counts (x - A z)^2 + sum weights |z| + mu/2 ||z||^2 by plain proximal gradient steps with momentum."""
    lipschitz = np.linalg.norm(a, 2) ** 2 + mu
    z = np.zeros(a.shape[1])
    y, t = z, 1.0
    for _ in range(steps):
        v = y + (a.T @ (counts * (x - a @ y)) - mu * y) / lipschitz
        new = np.sign(v) * np.maximum(np.abs(v) - weights / lipschitz, 0)
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y, z, t = new + (t - 1) / later * (new - z), new, later
    return z


def test_elastic_net_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    d, x = filters(), picture()
    beta, mu = 0.3, 0.2
    codes = ocsc.code(x[None], d, beta, penalty=f"elastic:{mu}", **SETTINGS)
    a, n = matrix(d, x.shape), x.size
    # 1/(2n) ||x - A z||^2 + alpha ratio |z| + alpha (1 - ratio)/2 ||z||^2
    alpha, ratio = (beta + mu) / n, beta / (beta + mu)
    model = linear_model.ElasticNet(alpha=alpha, l1_ratio=ratio, fit_intercept=False, tol=1e-12, max_iter=100_000)
    expected = model.fit(a, x.ravel()).coef_
    assert np.abs(dense(codes) - expected).max() < 1e-5
    objective = 0.5 * ((x.ravel() - a @ expected) ** 2).sum() + beta * np.abs(expected).sum() + mu / 2 * (expected**2).sum()
    assert abs(codes.objective[0] - objective) < 1e-6 * objective


def test_weights_of_values_and_of_coefficients_are_those_of_the_problem() -> None:
    d, x = filters(), picture()
    a = matrix(d, x.shape)
    counts = np.random.default_rng(3).uniform(0, 1, x.shape)
    weights = np.random.default_rng(4).uniform(0.3, 2, (3, *x.shape))
    beta = 0.3
    codes = ocsc.code(x[None], d, beta, mask=counts, weights=weights, **SETTINGS)
    z = proximal(a, x.ravel(), beta * weights.ravel(), counts=counts.ravel())
    objective = 0.5 * (counts.ravel() * (x.ravel() - a @ z) ** 2).sum() + beta * (weights.ravel() * np.abs(z)).sum()
    assert abs(codes.objective[0] - objective) < 1e-6 * objective
    rule = 1 / (np.abs(a.T @ x.ravel()) + 0.1)
    codes = ocsc.code(x[None], d, beta, weights="inverse:0.1", **SETTINGS)
    z = proximal(a, x.ravel(), beta * rule)
    objective = 0.5 * ((x.ravel() - a @ z) ** 2).sum() + beta * (rule * np.abs(z)).sum()
    assert abs(codes.objective[0] - objective) < 1e-6 * objective


@pytest.mark.parametrize("penalty", ["log-sum:0.3", "mcp:3", "lq:0.5"])
def test_concave_penalties_end_where_nothing_wants_to_move(penalty: str) -> None:
    d, x = filters(), picture()
    a = matrix(d, x.shape)
    beta = 0.4
    codes = ocsc.code(x[None], d, beta, penalty=penalty, max_rounds=2000, **SETTINGS)
    name, number = penalty.split(":")
    p = float(number)
    z = dense(codes)
    size = np.abs(z)
    slope, pays = {
        "log-sum": lambda: (beta / (1 + size / p), beta * p * np.log1p(size / p)),
        "mcp": lambda: (
            np.maximum(beta - size / p, 0),
            np.where(size < p * beta, beta * size - size**2 / (2 * p), p * beta**2 / 2),
        ),
        "lq": lambda: (beta * (1 + size / beta) ** (p - 1), beta**2 / p * ((1 + size / beta) ** p - 1)),
    }[name]()
    residual = x.ravel() - a @ z
    pull = a.T @ residual
    assert np.abs(pull - np.sign(z) * slope)[z != 0].max() < 1e-3 * beta
    assert np.abs(pull)[z == 0].max() < (1 + 1e-3) * beta
    assert abs(codes.objective[0] - (0.5 * (residual**2).sum() + pays.sum())) < 1e-6 * codes.objective[0]


def test_refitted_values_are_least_squares_on_the_support() -> None:
    d, x = filters(), picture((24, 25))
    plain = ocsc.code(x[None], d, 1.2, **SETTINGS)
    codes = ocsc.code(x[None], d, 1.2, refit=True, **SETTINGS)
    z, before = dense(codes), dense(plain)
    a = matrix(d, x.shape)
    support = z != 0
    expected = np.linalg.lstsq(a[:, support], x.ravel(), rcond=None)[0]
    assert np.abs(z[support] - expected).max() < 1e-6
    assert np.all(np.sign(z[support]) == np.sign(before[support]))
    assert np.abs(z[support]).sum() > np.abs(before[support]).sum()


def test_paths_are_the_codes_of_their_betas() -> None:
    d, x = filters(), np.stack([picture(), picture() + 1])
    betas = ocsc.beta_max(x, d).max() * np.array([0.1, 0.8, 0.3])
    path = ocsc.path(x, d, betas, **SETTINGS)
    assert list(path.betas) == sorted(betas, reverse=True)
    assert path.gap.shape == path.objective.shape == path.nonzeros.shape == (3, 2)
    for codes, beta in zip(path.codes, path.betas):
        alone = ocsc.code(x, d, beta, **SETTINGS)
        assert np.allclose(codes.objective, alone.objective, rtol=1e-6)
        assert np.all(codes.beta == beta)
    with pytest.raises(ValueError, match="betas: expected at least one"):
        ocsc.path(x, d, [])


def test_budgets_and_matching_pursuit() -> None:
    d, x = filters(), picture((24, 25))
    for extra in ({}, {"coder": "omp"}):
        codes = ocsc.code(x[None], d, nonzeros=30, dtype="f64", **extra)
        assert 25 <= codes.nonzeros[0] <= 30
        codes = ocsc.code(x[None], d, error=0.8, dtype="f64", **extra)
        back = ocsc.reconstruct(codes, d)[0]
        assert np.sqrt(((x - back) ** 2).mean()) <= 0.8 + 1e-6
        codes = ocsc.code(x[None], d, explained=0.5, dtype="f64", **extra)
        back = ocsc.reconstruct(codes, d)[0]
        assert 1 - ((x - back) ** 2).sum() / (x**2).sum() >= 0.5 - 1e-6
    with pytest.raises(ValueError, match="expected one budget"):
        ocsc.code(x[None], d, nonzeros=3, error=0.1)


def test_a_robust_loss_is_not_moved_by_artefacts() -> None:
    d = filters(4, 5)
    codes = np.zeros((4, 40, 40))
    rng = np.random.default_rng(5)
    codes[rng.integers(0, 4, 60), rng.integers(0, 40, 60), rng.integers(0, 40, 60)] = rng.uniform(1, 2, 60)
    clean = (matrix(d, (40, 40)) @ codes.ravel()).reshape(40, 40)
    spoilt = clean + 0.05 * rng.standard_normal(clean.shape)
    spoilt[rng.random(clean.shape) < 0.05] = 10
    errors = {}
    for loss in ("l2", "huber:0.2", "l1"):
        model = ocsc.code(spoilt[None], d, 1.0 if loss == "l1" else 0.3, loss=loss, dtype="f64")
        errors[loss] = np.abs(ocsc.reconstruct(model, d)[0] - clean).mean()
    assert errors["huber:0.2"] < 0.3 * errors["l2"]
    assert errors["l1"] < 0.3 * errors["l2"]


def test_learning_takes_penalty_loss_and_weights_of_values() -> None:
    x = np.random.default_rng(6).standard_normal((4, 20, 20))
    counts = np.random.default_rng(7).uniform(0, 1, x.shape)
    for params in ({"penalty": "log-sum:0.5"}, {"penalty": "elastic:0.1"}, {"loss": "huber:1"}, {"nonzeros": 20}):
        model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=1.0, passes=2, **params).fit(x, mask=counts)
        codes = model.transform(x)
        assert codes.nonzeros.sum() > 0
        again = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=1.0, passes=2, **params).fit(x, mask=counts)
        assert np.array_equal(model.filters_, again.filters_)


def test_bad_values_are_refused() -> None:
    d, x = filters(), picture()[None]
    for params, words in (
        ({"penalty": "l2"}, "penalty: expected l1"),
        ({"penalty": "mcp:0.5"}, "GAMMA above 1"),
        ({"loss": "huber"}, "loss: expected l2"),
        ({"weights": "inverse:0"}, "EPS above 0"),
        ({"weights": np.ones((3, 4, 4))}, "the shape of the code"),
        ({"weights": np.zeros((3, 12, 13))}, "above 0"),
        ({"mask": np.full((1, 12, 13), 2.0)}, "weights from 0"),
        ({"explained": 1.5}, "explained"),
        ({"coder": "omp", "penalty": "mcp:2"}, "omp"),
    ):
        with pytest.raises(ValueError, match=words):
            ocsc.code(x, d, 1.0, **params)
