"""Choosing beta: tuning, the score of hidden values, and warnings of a beta that does not suit the data."""

import re
import warnings

import numpy as np
import pytest
from conftest import require

import ocsc
from ocsc import OnlineCSC

FILTERS = dict(n_filters=4, filter_shape=(5, 5))


@pytest.fixture(scope="module")
def noisy():
    """Images of a few known filters at few places, with noise."""
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((4, 5, 5))
    filters /= np.sqrt((filters**2).sum((1, 2), keepdims=True))
    z = rng.uniform(1, 3, (6, 4, 32, 32)) * (rng.random((6, 4, 32, 32)) < 0.01)
    padded = np.zeros((4, 32, 32))
    padded[:, :5, :5] = filters
    clean = np.fft.irfft2((np.fft.rfft2(z) * np.fft.rfft2(padded)).sum(1), (32, 32))
    return clean + 0.1 * rng.standard_normal(clean.shape)


def test_tune(noisy):
    tuned = ocsc.tune(noisy, **FILTERS, passes=3)
    assert len(tuned.table) > 3 and tuned.n_filters == 4 and tuned.filter_shape == (5, 5)
    errors = [row["error"] for row in tuned.table]
    assert min(errors) <= tuned.error < 0.9
    best = min((row for row in tuned.table if row["nonzeros_share"] <= 0.5), key=lambda row: row["error"])
    assert tuned.ratio >= best["ratio"] and tuned.error <= best["error"] + best["standard_error"]
    assert f"ratio={tuned.ratio:g}" in repr(tuned)
    # The ratio means the same to the estimator, and data of another scale have the same.
    assert OnlineCSC(**FILTERS, beta_ratio=tuned.ratio, passes=0).fit(noisy).beta_ == pytest.approx(tuned.beta)
    for scale in (1e-12, 1e4):
        assert ocsc.tune(noisy * scale, **FILTERS, passes=3).ratio == tuned.ratio


def test_the_end_of_a_path_is_told_from_a_minimum_inside(noisy):
    inside = ocsc.tune(noisy, **FILTERS, passes=3)
    assert inside.end_of_path is None and inside.caveat is None and str(inside) == repr(inside)
    # Without noise the smallest beta predicts best, whatever it is.
    rng = np.random.default_rng(0)
    clean = np.stack([np.outer(np.sin(rng.uniform(0.2, 0.9) * np.arange(32)), np.cos(0.3 * np.arange(32))) for _ in range(6)])
    for ratios, end, words in [
        ([0.4, 0.2, 0.1], "smallest", "hardly any noise.*smaller ratios="),
        (None, "dense", "hardly any noise.*how sparse codes should be"),
    ]:
        tuned = ocsc.tune(clean, **FILTERS, passes=3, ratios=ratios)
        assert tuned.end_of_path == end and f"end_of_path='{end}'" in repr(tuned)
        assert re.search(f"best beta is the end of the path.*{words}", str(tuned)), str(tuned)
    tuned = ocsc.tune(noisy, **FILTERS, passes=3, ratios=[0.02, 0.01])
    assert tuned.end_of_path == "largest" and "try larger ratios=" in tuned.caveat
    assert ocsc.tune(noisy, **FILTERS, passes=3, ratios=[0.2]).end_of_path is None


def test_tune_filters_and_models(noisy):
    tried = ocsc.tune(noisy, try_filters=[1, 4], try_shapes=[(3, 3), (5, 5)], ratios=[0.1, 0.3])
    assert [(row["n_filters"], row["filter_shape"]) for row in tried.table[::2]] == [(1, (3, 3)), (4, (3, 3)), (1, (5, 5)), (4, (5, 5))]
    assert [row["ratio"] for row in tried.table[:2]] == [0.3, 0.1]
    model = OnlineCSC(**FILTERS).fit(noisy)
    assert ocsc.tune(noisy, model).n_filters == 4
    for call, message in [
        (lambda: ocsc.tune(noisy, model, n_filters=3), "model: expected a fitted estimator, or other parameters"),
        (lambda: ocsc.tune(noisy, **FILTERS, beta=1.0), "beta: expected none"),
        (lambda: ocsc.tune(iter(noisy), **FILTERS), "X: expected data that can be read more than once"),
        (lambda: ocsc.tune(noisy, **FILTERS, hidden=0.0), "hidden: expected a share of the values between 0 and 1"),
        (lambda: ocsc.tune(noisy, **FILTERS, method="fcsc"), "method: expected ocsc"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_plot(noisy):
    matplotlib = require("matplotlib")
    matplotlib.use("Agg")
    ax = ocsc.tune(noisy, **FILTERS, ratios=[0.3, 0.1]).plot()
    assert "recommended" in ax.get_legend().get_texts()[-1].get_text() + ax.get_legend().get_texts()[0].get_text()
    assert ax.get_xscale() == "log"


def test_scores_of_hidden_values_compare_betas(noisy):
    scores = [ocsc.heldout_score(OnlineCSC(**FILTERS, beta=beta, passes=3).fit(noisy[:4]), noisy[4:]) for beta in (3.0, 0.3, 0.001)]
    assert scores[1] > max(scores[0], scores[2]) and scores[1] < 0
    model = OnlineCSC(**FILTERS, beta=0.3, passes=3, scoring="heldout").fit(noisy[:4])
    assert model.score(noisy[4:]) == scores[1]
    with pytest.raises(ValueError, match="scoring: expected 'objective' or 'heldout', found 'best'"):
        model.set_params(scoring="best").score(noisy)


def test_grid_search_over_beta(noisy):
    require("sklearn")
    from sklearn.model_selection import GridSearchCV

    grid = {"beta": [3.0, 0.3, 0.001]}
    for scoring, settings in [(ocsc.heldout_score, {}), (None, dict(scoring="heldout"))]:
        model = OnlineCSC(**FILTERS, passes=3, threads=1, **settings)
        assert GridSearchCV(model, grid, cv=2, scoring=scoring).fit(noisy).best_params_ == {"beta": 0.3}


def test_a_beta_that_does_not_suit_the_data_is_warned_of(noisy):
    with pytest.warns(ocsc.SparsityWarning, match="beta 1 is large for these data: 6 of 6 codes are all zeros"):
        model = OnlineCSC(**FILTERS, beta=1.0).fit(noisy * 1e-12)
    for ask in (model.transform, model.evaluate):
        with pytest.warns(ocsc.SparsityWarning, match="all zeros; try beta=0.333, or a smaller one"):
            ask(noisy * 1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OnlineCSC(**FILTERS).fit(noisy * 1e-12)
        found = model.evaluate(noisy * 1e-12)
    assert 0 < found["nonzeros_share"] < 0.5 and found["empty"] == 0
    with pytest.warns(ocsc.SparsityWarning, match="beta 1e-06 is small for these data.*try beta=3e-06"):
        OnlineCSC(**FILTERS, beta=1e-6).fit(noisy)
