"""Defines `Step`, the type of what callbacks get."""

from typing import TypedDict

Step = TypedDict(
    "Step",
    {
        "step": int,
        "pass": int,
        "samples": int,
        "seconds": float,
        "objective": float,
        "gap": float,
        "nonzeros": float,
        "dictionary_change": float,
        "reseeded": int,
    },
)
Step.__doc__ = """Holds what a callback gets after every step.

``step``, ``pass`` and ``samples`` count from 1 over the run; ``seconds`` is the learning time so far. ``objective``, ``gap``
and ``nonzeros`` are of the step's samples, coded against the dictionary before the update: the mean, the worst and the mean.
``dictionary_change`` is ||D - D_old|| / ||D||, and ``reseeded`` counts filters that were replaced.
"""
