"""Defines `CodePooler`, which makes a matrix of codes for classifiers, with scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ._codes import POOLS, Code, Codes, axis_bins
from ._errors import not_fitted


class CodePooler:
    """Pools codes to one row of numbers per sample, as `Codes.pool` does: a step between `OnlineCSC` and a classifier.

    Parameters
    ----------
    how : {'sum', 'max', 'count', 'energy'}
        What to take of the coefficients of a filter.
    bins : int or sequence of int
        In how many equal parts to cut each axis.

    Examples
    --------
    >>> import numpy as np, ocsc
    >>> X = np.random.default_rng(0).standard_normal((3, 16, 16))
    >>> codes = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=2.0).fit_transform(X)
    >>> pooler = ocsc.CodePooler("max", bins=(1, 2))
    >>> pooler.fit_transform(codes).shape
    (3, 8)
    >>> pooler.get_feature_names_out()[:3].tolist()
    ['filter0_max_0_0', 'filter0_max_0_1', 'filter1_max_0_0']
    """

    def __init__(self, how: str = "sum", bins: int | Sequence[int] = 1) -> None:
        self.how = how
        self.bins = bins

    def fit(self, X: Codes, y: object = None) -> CodePooler:
        """Learns how many filters and axes there are.

        Parameters
        ----------
        X : Codes
            From `OnlineCSC.transform`.
        y : ignored
            For scikit-learn.

        Returns
        -------
        CodePooler
        """
        codes = _codes(X)
        if self.how not in POOLS:
            raise ValueError(f"how: expected one of {', '.join(POOLS)}, found {self.how!r}")
        rank = codes.shapes.shape[1] - 1
        axis_bins(self.bins, rank)
        self.n_filters_ = int(codes.shapes[0, 0])
        self.n_axes_ = rank
        return self

    def transform(self, X: Codes) -> Any:
        """Pools codes.

        Parameters
        ----------
        X : Codes
            Of as many filters as `fit` saw.

        Returns
        -------
        ndarray of shape (n, K * bins), or DataFrame
            A DataFrame after ``set_output(transform='pandas')``.
        """
        if not hasattr(self, "n_filters_"):
            raise not_fitted(type(self).__name__)
        codes = _codes(X)
        found = (int(codes.shapes[0, 0]), codes.shapes.shape[1] - 1)
        if found != (self.n_filters_, self.n_axes_):
            raise ValueError(
                f"X: expected codes of {self.n_filters_} filters and {self.n_axes_} axes, as in fit, found {found[0]} and {found[1]}"
            )
        pooled = codes.pool(self.how, self.bins)
        if getattr(self, "_output", "default") != "pandas":
            return pooled
        try:
            import pandas
        except ImportError as error:
            raise ImportError("set_output(transform='pandas'): expected pandas; pip install pandas") from error
        return pandas.DataFrame(pooled, columns=self.get_feature_names_out())

    def fit_transform(self, X: Codes, y: object = None) -> Any:
        """Calls `fit`, then `transform`."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Returns the names of the columns: ``filter3_sum``, or ``filter3_sum_0_1`` with the part on each axis.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn.

        Returns
        -------
        ndarray of str
        """
        if not hasattr(self, "n_filters_"):
            raise not_fitted(type(self).__name__)
        parts = axis_bins(self.bins, self.n_axes_)
        ends = [""] if np.prod(parts) == 1 else ["_" + "_".join(map(str, cell)) for cell in product(*map(range, parts))]
        return np.array([f"filter{k}_{self.how}{end}" for k in range(self.n_filters_) for end in ends], object)

    def set_output(self, *, transform: str | None = None) -> CodePooler:
        """Sets what `transform` returns.

        Parameters
        ----------
        transform : {'default', 'pandas'}, optional
            An array or a DataFrame; None changes nothing.

        Returns
        -------
        CodePooler
        """
        if transform not in (None, "default", "pandas"):
            raise ValueError(f"transform: expected 'default' or 'pandas', found {transform!r}")
        if transform is not None:
            self._output = transform
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters by name."""
        return {"how": self.how, "bins": self.bins}

    def set_params(self, **params: Any) -> CodePooler:
        """Sets parameters by name."""
        for name, value in params.items():
            if name not in ("how", "bins"):
                raise ValueError(f"{name}: expected a parameter of CodePooler: how, bins")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"CodePooler(how={self.how!r}, bins={self.bins!r})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_filters_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(two_d_array=False),
        )


def _codes(X: Any) -> Codes:
    if not isinstance(X, Codes):
        advice = "; a single one is codes[i:i+1]" if isinstance(X, Code) else ""
        raise TypeError(f"X: expected Codes, as OnlineCSC.transform returns them, found {type(X).__name__}{advice}")
    if len(X) == 0:
        raise ValueError("X: expected the codes of at least one sample, found none")
    return X
