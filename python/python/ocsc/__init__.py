"""Online convolutional sparse coding.

Learn a dictionary of small filters from a stream of images, signals or volumes, and represent each as a sum of those
filters convolved with sparse maps::

    min over D, {Z_i}   (1/N) sum_i  1/2 || x_i - sum_k D_k * Z_ik ||^2 + beta ||Z_i||_1     with ||D_k||_2 <= 1

`OnlineCSC` learns and codes, with scikit-learn's conventions; `tune` chooses its beta; `code`, `reconstruct` and `beta_max` work with filters from
anywhere; `load` and `save` exchange models with the program ``ocsc``.

Examples
--------
>>> import numpy as np
>>> from ocsc import OnlineCSC
>>> X = np.random.default_rng(0).standard_normal((4, 24, 24))
>>> model = OnlineCSC(n_filters=6, filter_shape=(5, 5), beta=1.5).fit(X)
>>> model.filters_.shape
(6, 5, 5)
>>> codes = model.transform(X)
>>> model.inverse_transform(codes).shape
(4, 24, 24)
"""

from . import metrics, plot, restore
from ._codes import Code, Codes
from ._errors import ConvergenceWarning, NoiseWarning, NotFittedError, SparsityWarning
from ._estimator import OnlineCSC
from ._functions import Path, beta_max, code, load, path, preprocess, reconstruct, save
from ._native import methods
from ._native import version as _version
from ._pooler import CodePooler
from ._rank1 import Rank1
from ._step import Step
from ._tune import Tuned, heldout_score, tune

__version__ = _version()

__all__ = [
    "Code",
    "CodePooler",
    "Codes",
    "ConvergenceWarning",
    "NoiseWarning",
    "NotFittedError",
    "OnlineCSC",
    "Path",
    "Rank1",
    "SparsityWarning",
    "Step",
    "Tuned",
    "beta_max",
    "code",
    "heldout_score",
    "load",
    "methods",
    "metrics",
    "path",
    "plot",
    "preprocess",
    "reconstruct",
    "restore",
    "save",
    "tune",
]
