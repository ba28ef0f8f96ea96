"""Chooses beta, and the number and size of filters, by predicting hidden values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._convert import dtype_of, filters_of, lengths, positive, rank_of, seed_of, threads_of
from ._declarations import SETTINGS
from ._inputs import Reader, source_of

if TYPE_CHECKING:
    from ._estimator import OnlineCSC


def _row(point: dict[str, Any]) -> dict[str, Any]:
    """Returns a point as people read it."""
    return {name: value for name, value in point.items() if name != "squared_errors"}


_LITTLE_NOISE = (
    "Data with hardly any noise are like that, and so are filters that do not suit the data: the smaller beta is, the better hidden values "
    "are predicted, and the denser the codes are."
)

_CAVEATS = {
    "smallest": (
        f"the error falls up to the smallest ratio that was tried. {_LITTLE_NOISE} Try smaller ratios=, or choose a beta by how sparse "
        "codes should be (nonzeros_share in the table)."
    ),
    "dense": (
        "the error falls for as long as codes are sparse, with at most half as many non-zeros as values. "
        f"{_LITTLE_NOISE} Choose a beta by how sparse codes should be (nonzeros_share in the table)."
    ),
    "largest": (
        "no ratio predicts better, by more than chance, than the largest that was tried. Larger ones may predict as well, with sparser "
        "codes: try larger ratios=. An error near 1 says that these filters predict little: try others."
    ),
}
"""What it means that the best beta is an end of the path, by the native half's words for the ends."""


class Tuned:
    """Tells how well hidden values were predicted with every beta, and which beta is recommended.

    Attributes
    ----------
    table : list of dict
        One row for every beta and every number and size of filters: ``n_filters``, ``filter_shape``, ``ratio``, ``beta``,
        ``nonzeros_share``, ``error`` (root mean square, relative to the standard deviation of the hidden values),
        ``standard_error`` (over samples) and ``seconds``.
    beta, ratio : float
        The recommended beta, and its ratio to the smallest one with all-zero codes: to code with, and with ``relearn=True`` to
        learn with, as ``OnlineCSC(beta_ratio=...)``.
    n_filters, filter_shape
        The recommended number and size of filters, of those that were tried.
    error : float
        The error with what is recommended.
    end_of_path : str or None
        Where the best beta is an end of the path, so that the rule could not find a better one: ``'largest'``, ``'smallest'``, or
        ``'dense'``, the smallest with sparse codes. None where it lies inside, or where a single ratio was tried.
    caveat : str or None
        What that means and what to do, in words; printed with the result.
    """

    def __init__(self, tries: list[dict[str, Any]]) -> None:
        """Keeps what the native half found, one entry for every number and size of filters."""
        self.tries = tries
        self.table = [
            {"n_filters": one["n_filters"], "filter_shape": tuple(one["filter_shape"]), **_row(point)}
            for one in tries
            for point in one["points"]
        ]
        self._chosen = _recommended(tries)
        point = self._chosen["points"][self._chosen["recommended"]]
        self.beta: float = point["beta"]
        self.ratio: float = point["ratio"]
        self.error: float = point["error"]
        self.n_filters: int = self._chosen["n_filters"]
        self.filter_shape = tuple(self._chosen["filter_shape"])
        self.end_of_path: str | None = self._chosen["end_of_path"]
        self.caveat = None if self.end_of_path is None else f"The best beta is the end of the path: {_CAVEATS[self.end_of_path]}"

    def plot(self, ax: Any = None) -> Any:
        """Draws the errors against the ratios, with the recommendation marked.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        for one in self.tries:
            points = one["points"]
            ax.errorbar(
                [p["ratio"] for p in points],
                [p["error"] for p in points],
                [p["standard_error"] for p in points],
                marker="o",
                capsize=3,
                label=f"{one['n_filters']} filters of {'x'.join(map(str, one['filter_shape']))}",
            )
        label = f"recommended: ratio {self.ratio:g}, beta {self.beta:.4g}"
        ax.plot([self.ratio], [self.error], "o", markersize=14, fillstyle="none", color="crimson", label=label)
        ax.set(xscale="log", xlabel="beta / beta_max", ylabel="error of hidden values (standard deviations)")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        return (
            f"Tuned(ratio={self.ratio:g}, beta={self.beta:.6g}, error={self.error:.4g}, n_filters={self.n_filters}, "
            f"filter_shape={self.filter_shape}, end_of_path={self.end_of_path!r})"
        )

    def __str__(self) -> str:
        return repr(self) if self.caveat is None else f"{self!r}\n{self.caveat}"


def _best(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the point of the smallest error, of those with sparse codes if there are any."""
    sparse = [point for point in points if point["nonzeros_share"] <= 0.5]
    return min(sparse or points, key=lambda point: point["error"])


def _recommended(tries: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the try with the fewest values in its filters, of those whose best error is within one standard error of the best."""
    bests = [_best(one["points"]) for one in tries]
    best = min(bests, key=lambda point: point["error"])
    most = best["error"] + best["standard_error"]
    within = [one for one, point in zip(tries, bests, strict=True) if point["error"] <= most]
    return min(within, key=lambda one: one["n_filters"] * int(np.prod(one["filter_shape"])))


def tune(
    X: Any,
    model: OnlineCSC | None = None,
    *,
    mask: Any = None,
    try_filters: Sequence[int] | None = None,
    try_shapes: Sequence[Any] | None = None,
    ratios: Sequence[float] | None = None,
    hidden: float = 0.05,
    samples: int | None = None,
    relearn: bool = False,
    **params: Any,
) -> Tuned:
    """Chooses beta by predicting hidden values, as the program's ``ocsc tune`` does.

    A few values of every sample are hidden. The others are coded along a path of betas, and the hidden ones are compared with the
    reconstruction. Recommended is the largest beta whose error is within one standard error, over samples, of the smallest. Samples
    are preprocessed before values are hidden; large ones are cut to pieces.

    Parameters
    ----------
    X : array or list of arrays
        Samples, as for `OnlineCSC.fit`.
    model : OnlineCSC, optional
        A fitted estimator whose filters and settings are used. By default filters are learned, from what is not hidden, in a pass.
    mask : array or list of arrays, optional
        Which values were observed; hidden are some of those.
    try_filters : sequence of int, optional
        Numbers of filters to try.
    try_shapes : sequence, optional
        Sizes of filters to try, each as ``filter_shape``.
    ratios : sequence of float, optional
        The fractions of the largest useful beta to try; from 0.5 down to 0.011 by default.
    hidden : float, default=0.05
        The share of the values to hide.
    samples : int, optional
        Samples, or pieces of large ones, to take; as many as make 260,000 values by default.
    relearn : bool, default=False
        Learn the filters anew at every beta.
    **params
        Parameters of `OnlineCSC`, such as ``n_filters`` and ``filter_shape``. ``beta_ratio`` is what filters are learned with.

    Returns
    -------
    Tuned
        With ``beta``, ``ratio``, ``table`` and ``plot()``.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> X = np.random.default_rng(0).standard_normal((4, 32, 32))
    >>> tuned = ocsc.tune(X, n_filters=4, filter_shape=(5, 5), ratios=[0.8, 0.4])
    >>> len(tuned.table)
    2
    """
    from ._estimator import OnlineCSC

    if model is not None and (params or try_filters is not None or try_shapes is not None):
        raise ValueError("model: expected a fitted estimator, or other parameters to learn filters with, found both")
    if params.get("beta") is not None:
        raise ValueError(f"beta: expected none, since betas are tried, found {params['beta']!r}; beta_ratio is learned with")
    order = None if ratios is None else sorted(map(float, ratios), reverse=True)
    if model is not None:
        source = _readable(model._source(X, mask))
        settings, filters = model._coding(source.dtype)
        settings["random_state"] = 0
        return Tuned([_tried(settings, filters, True, source, hidden, order, None, relearn, samples, model.threads)])
    base = OnlineCSC(**params)
    tries = []
    for shape in try_shapes if try_shapes is not None else [base.filter_shape]:
        for number in try_filters if try_filters is not None else [base.n_filters]:
            source = _readable(source_of(X, base.axes, rank_of(shape), mask, base.window, base.sfreq))
            rank = source.layout.rank
            settings = {name: getattr(base, name) for name, s in SETTINGS.items() if s.is_recorded and name != "beta"}
            settings.update(n_filters=number, filter_shape=lengths(shape, rank), random_state=seed_of(base.random_state))
            settings["dtype"] = dtype_of(base.dtype, source.dtype)
            start = filters_of(base.init, number, shape, rank)
            ratio = positive("beta_ratio", base.beta_ratio)
            tries.append(_tried(settings, start, False, source, hidden, order, ratio, relearn, samples, base.threads))
    return Tuned(tries)


def _tried(
    settings: dict[str, Any],
    start: Any,
    is_model: bool,
    source: Reader,
    hidden: float,
    ratios: list[float] | None,
    learned_at: float | None,
    relearn: bool,
    samples: int | None,
    threads: Any,
) -> dict[str, Any]:
    """Returns what came of one number and size of filters."""
    found = _native.tune(
        settings, start, is_model, source, len(source), hidden, ratios, learned_at, relearn, samples, threads_of(threads)
    )
    tried: dict[str, Any] = json.loads(found)
    return tried


def _readable(source: Any) -> Reader:
    """Refuses samples that can be read once only."""
    if not isinstance(source, Reader):
        raise ValueError("X: expected data that can be read more than once, found an iterator")
    return source


def heldout_score(
    estimator: OnlineCSC, X: Any, y: object = None, *, mask: Any = None, hidden: float = 0.05, random_state: int = 0
) -> float:
    """Returns minus the error of hidden values that the estimator predicts: for searches over beta.

    Unlike the objective, it compares estimators of any ``beta``, number and size of filters. It is a scorer of scikit-learn:
    ``GridSearchCV(OnlineCSC(), {"beta_ratio": [0.05, 0.1, 0.2]}, scoring=ocsc.heldout_score)``.

    Parameters
    ----------
    estimator : OnlineCSC
        A fitted estimator.
    X : array or list of arrays
        Samples. After preprocessing, a few of their values are hidden, the others are coded, and the hidden ones are predicted.
    y : ignored
        For scikit-learn.
    mask : array or list of arrays, optional
        Which values were observed.
    hidden : float, default=0.05
        The share of the values to hide.
    random_state : int, default=0
        Decides which; estimators are compared with the same.

    Returns
    -------
    float
        Minus the root mean square error, relative to the standard deviation of the hidden values.
    """
    estimator._fitted()
    source = _readable(estimator._source(X, mask))
    settings, filters = estimator._coding(source.dtype)
    seed, threads = seed_of(random_state), threads_of(estimator.threads)
    return -_native.heldout(settings, np.asarray(filters), source, len(source), hidden, seed, threads)


__all__ = ["Tuned", "heldout_score", "tune"]
