"""Makes data frames of records, where pandas is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def frame_of(records: npt.NDArray[Any], what: str) -> Any:
    """Returns a structured array as a data frame; ``what`` was asked for it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{what}: expected pandas; pip install pandas") from error
    # Column by column: those of a structured array lie apart, and some versions of pandas refuse such.
    return pandas.DataFrame({name: np.ascontiguousarray(records[name]) for name in records.dtype.names or ()})
