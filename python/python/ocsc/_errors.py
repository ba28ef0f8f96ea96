"""Defines our exceptions and warnings, and words for them."""

import sys
import warnings
from pathlib import Path


class NotFittedError(ValueError, AttributeError):
    """Raised when something is asked of an estimator that has learned nothing yet.

    Where scikit-learn is loaded, what is raised is a ``sklearn.exceptions.NotFittedError`` too.
    """


class ConvergenceWarning(UserWarning):
    """Some codes did not come as close to optimal as was asked; their ``gap`` says how close they came."""


class SparsityWarning(UserWarning):
    """Most codes are all zeros, or hardly sparse: beta does not suit the data."""


class NoiseWarning(UserWarning):
    """A ``sigma`` that was given is far from the noise that the image seems to have: it may be on another scale."""


def counted(n: int, what: str) -> str:
    """Returns a count in words: ``1 sample``, ``2 samples``."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def warn_of_codes(message: str, dtype: str) -> None:
    """Warns with `ConvergenceWarning` at the line outside this package that called. Advises f64 where it is not in use."""
    message += ", or use dtype='f64'" if dtype == "f32" else ""
    _warn(message, ConvergenceWarning)


def warn_of_sparsity(codes: int, empty: int, nonzeros: int, values: int, beta: float) -> None:
    """Warns with `SparsityWarning` if most of the codes are all zeros, or there are more non-zeros than half of the values."""
    if 2 * empty > codes:
        these = "the code is" if codes == 1 else f"{empty} of {codes} codes are"
        _warn(
            f"beta {beta:.6g} is large for these data: {these} all zeros; try beta={beta / 3:.3g}, or a "
            "smaller one (ocsc.beta_max gives the smallest beta with an all-zero code)",
            SparsityWarning,
        )
    elif 2 * nonzeros > values > 0:
        _warn(
            f"beta {beta:.6g} is small for these data: the codes have as many non-zeros as {nonzeros / values:.0%} of the values; try "
            f"beta={3 * beta:.3g}, or a larger one (ocsc.beta_max gives the smallest beta with an all-zero code)",
            SparsityWarning,
        )


def warn_of_noise(sigma: float, estimate: float) -> None:
    """Warns with `NoiseWarning` that a given standard deviation is far from the estimated one."""
    if sigma > estimate:
        far = f"far above the noise that the image seems to have, {estimate:.4g}: details may be lost (noise that neighbours share is underestimated)"
    else:
        far = f"far below the noise that the image seems to have, {estimate:.4g}: most of it may stay (fine texture counts as noise too)"
    _warn(f"sigma {sigma:.6g} is {far}; it is in the units of the image, and without sigma it is estimated", NoiseWarning)


def warn_of_order(message: str) -> None:
    """Warns of filters that may be in another order than they are read in."""
    _warn(message, UserWarning)


def _warn(message: str, category: type[Warning]) -> None:
    """Warns at the line outside this package that called."""
    here, level = str(Path(__file__).parent), 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def not_fitted(name: str) -> NotFittedError:
    """Returns the exception that an estimator of this class raises before it has learned."""
    message = f"this {name} is not fitted yet; expected a call of fit or partial_fit before"
    sklearn = sys.modules.get("sklearn.exceptions")
    if sklearn is None:
        return NotFittedError(message)
    both = type("NotFittedError", (NotFittedError, sklearn.NotFittedError), {"__doc__": NotFittedError.__doc__})
    error: NotFittedError = both(message)
    return error
