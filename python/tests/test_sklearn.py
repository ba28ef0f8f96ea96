"""scikit-learn's conventions, by its own checks and in its own tools."""

import numpy as np
import pytest
from conftest import require, smooth

import ocsc
from ocsc import OnlineCSC

sklearn = require("sklearn")

from sklearn.base import clone, is_regressor  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

# The one place for what does not apply, and why. Here X of the checks, (n, features), is a set of signals.
ANY_LENGTH = "filters are convolved with signals of any length, so transform takes other lengths than fit saw"
EXCEPTIONS = {
    "check_n_features_in_after_fitting": ANY_LENGTH,
    "check_transformer_general": ANY_LENGTH,
}


def checks():
    model = OnlineCSC(n_filters=3, filter_shape=2, beta=0.5, threads=1)
    return list(estimator_checks_generator(model, mark="skip", expected_failed_checks=EXCEPTIONS))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), checks(), ids=lambda value: getattr(getattr(value, "func", None), "__name__", ""))
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
def test_the_exceptions_are_needed():
    from sklearn.utils.estimator_checks import check_estimator

    model = OnlineCSC(n_filters=3, filter_shape=2, beta=0.5, threads=1)
    failed = {result["check_name"] for result in check_estimator(model, on_fail=None) if result["status"] == "failed"}
    assert failed == set(EXCEPTIONS)


def test_clone_and_tags(images):
    model = OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3, callback=print).fit(images)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "filters_")
    assert not is_regressor(model)
    with pytest.raises(NotFittedError):
        copy.transform(images)


def test_pipeline(images):
    from sklearn.linear_model import LogisticRegression

    X = np.concatenate([smooth(12), smooth(12, seed=1) * 3])
    y = np.repeat([0, 1], 12)
    model = make_pipeline(
        OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3),
        FunctionTransformer(ocsc.Codes.to_scipy),
        LogisticRegression(max_iter=1000),
    )
    assert model.fit(X, y).score(X, y) > 0.9
    last = make_pipeline(FunctionTransformer(lambda X: X - X.mean()), OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3))
    assert last.fit(X).transform(X).gap.max() <= 0.01


@pytest.mark.parametrize("jobs", [1, 2])
def test_grid_search(images, jobs):
    search = GridSearchCV(
        OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3, threads=1),
        {"passes": [0, 3]},
        cv=2,
        n_jobs=jobs,
    ).fit(images)
    assert search.best_params_ == {"passes": 3} and search.best_estimator_.n_steps_ == 18


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib(images, backend):
    joblib = require("joblib")
    model = OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=0.3, threads=1).fit(images)
    parts = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(model.transform)(images[i::2]) for i in range(2))
    expected = model.transform(images).to_dense()
    assert np.array_equal(parts[0].to_dense(), expected[::2]) and np.array_equal(parts[1].to_dense(), expected[1::2])
