"""Declares every parameter of `OnlineCSC`, once: the library's settings, and what is Python's own.

A setting of the library becomes a parameter as it was declared there: with its name, its default, its text and a type that its
kind decides. `OWN` declares the parameters that only Python has, `EXTENDED` what Python takes or explains beyond a setting.
The constructor's signature, its attributes and its documentation are made from these; ``cargo xtask generate`` writes the type
stub and the table of ``docs/settings.md`` from them.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from . import _native

WIDTH = 108
"""The width of documentation, without its indentation."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of the constructor."""

    name: str
    annotation: str
    """Its type, as type checkers read it."""
    values: str
    """Its type, as people read it."""
    default: Any
    doc: str
    """What it does, in sentences."""
    flag: str | None = None
    """The flag of the program's ``learn``, without dashes, where it has one."""

    def documentation(self) -> str:
        """Returns its entry in a docstring."""
        default = "optional" if self.default is None else f"default={self.default!r}"
        text = textwrap.fill(self.doc, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
        return f"{self.name} : {self.values}, {default}\n{text}"


OWN = (
    Parameter(
        "init",
        "str | npt.ArrayLike",
        "{'random', 'patches'} or array",
        "random",
        "Initial dictionary: random, patches (of the data), or an array of shape (K, C, axes...) or (K, axes...). An array also "
        "says how many filters there are and of what size; ``n_filters`` and ``filter_shape`` must say the same, or have their "
        "defaults.",
        flag="init",
    ),
    Parameter(
        "preset",
        "str | None",
        "{'paper'}",
        None,
        "paper: the settings of the paper's experiment, where nothing else is said: beta 1, beside the defaults of 100 filters of "
        "11x11, circular, one pass. Arrays are taken as they are: photos need preprocess='gray,lcn,taper' too.",
        flag="preset",
    ),
    Parameter(
        "per_channel",
        "bool",
        "bool",
        False,
        "Gray filters on every channel by itself: the step per-channel after those of ``preprocess``. Codes then have the channel "
        "as their first axis; with ``joint`` the channels share their support.",
        flag="per-channel",
    ),
    Parameter(
        "scoring",
        "str",
        "{'objective', 'heldout'}",
        "objective",
        "What `score` returns: minus the mean objective, which compares estimators of equal beta; or `ocsc.heldout_score`, which "
        "compares any.",
    ),
    Parameter("threads", "int | None", "int", None, "Threads to compute with; all cores by default.", flag="threads"),
    Parameter(
        "axes",
        "str | None",
        "str",
        None,
        "What the axes of arrays mean: N samples, C channels, D depth, H height, W width; T, time, is the W of signals, and the D of "
        "video where there is a W too. By default samples come first "
        "and have the axes of ``filter_shape``: (N, W), (N, H, W) or (N, D, H, W). For lists and iterators the letters are those "
        "of one sample; an N is ignored there. Without an N, an array with just these axes is one sample.",
        flag="axes",
    ),
    Parameter(
        "window",
        "int | str | None",
        "int or str",
        None,
        "Cut signals into windows: a number of values (2048) or seconds ('5s', which needs ``sfreq``); a rest shorter than half a "
        "window goes with the last. Codes are those of the windows; `Codes.events` and `inverse_transform` put them together again.",
        flag="window",
    ),
    Parameter(
        "sfreq",
        "float | None",
        "float",
        None,
        "Values per second of signals, or frames per second of video, for ``window`` in seconds and for the times of `Codes.events`.",
        flag="sfreq",
    ),
    Parameter(
        "verbose",
        "int | bool | str",
        "int or 'live'",
        0,
        "1 shows a progress bar, on stderr of terminals and as one output of a notebook's cell; elsewhere it writes a line to "
        "stderr every five seconds, and at the end. 'live' also opens a page in the browser that shows filters, curves and the "
        "newest sample while they change.",
    ),
    Parameter(
        "callback",
        "Callable[[Step], object] | None",
        "callable",
        None,
        "Called as ``callback(step)`` after every step, in the thread that called, with a `Step`: a dict of what happened. If it "
        "returns True the run ends there; None and False go on. An exception ends the run and is raised. What was learned up to "
        "the step is in the estimator: a callback may look at ``filters_``, or call ``score`` on other samples.",
    ),
)
"""The parameters that are no settings of the library."""

EXTENDED: dict[str, dict[str, Any]] = {
    "beta": {
        "annotation": "float | None",
        "values": "float",
        "default": None,
        "doc": "By default it is chosen to suit the data, as ``beta_ratio`` says; beside a ``beta_ratio`` it is refused.",
    },
    "beta_ratio": {"doc": f"Where neither is given, {_native.default_ratio()}. It depends neither on ``random_state`` nor on ``init``."},
    "filter_shape": {
        "doc": "Several lengths also say what samples are: (11,) signals, (11, 11) images, (5, 5, 5) volumes. One number says so "
        "only of samples with one axis, X of shape (n, W), which are signals; samples with more axes may be images, or signals "
        "with channels, and ``axes`` must say which."
    },
    "method": {
        "values": "str",
        "doc": f"One of {', '.join(repr(name) for name, _ in _native.methods())}; `ocsc.methods` lists them with a line each.",
    },
    "random_state": {
        "annotation": "Any",
        "values": "int, numpy generator or None",
        "doc": "None draws a seed, so that every run differs.",
    },
    "dtype": {
        "annotation": "Any",
        "values": "{'f32', 'f64', 'auto'} or numpy dtype",
        "doc": "With auto, f64 for data in f64 and f32 for others. Arrays of either precision are taken without conversion of the "
        "whole.",
    },
}
"""Other types of settings, and sentences that follow theirs."""

POSITIONS = (
    "n_filters filter_shape beta beta_ratio method passes batch_size tol boundary init random_state threads dtype axes preprocess "
    "non_negative weights max_rounds forgetting sweeps sweep_tol reseed stop max_iters rho adaptive_rho relaxation update_rho "
    "update_iters update_tol update_reset pass_code_iters pass_update_iters stop_tol time_limit memory_limit verbose callback"
).split()
"""The order of the parameters that may be given by position, which calls rely on. It is complete: whatever is not named here
follows, and is given by name alone."""

TYPES = {
    "switch": ("bool", "bool"),
    "count": ("int", "int"),
    "number": ("float", "float"),
    "optional-number": ("float | None", "float"),
    "optional-numbers": ("npt.ArrayLike | str | None", "array of shape (K,) or that of a code, or str"),
    "lengths": ("int | Sequence[int]", "int or sequence of int"),
    "sizes": ("Sequence[int | Sequence[int]]", "sequence of int, or of sequences of int"),
    "number-or-text": ("float | str", "float or str"),
    "choice": ("str", "{%s}"),
    "text": ("str", "str"),
    "optional-text": ("str | None", "str"),
    "optional-bytes": ("int | str | None", "int or str"),
    "optional-count": ("int | None", "int"),
}
"""The types of a setting's values by its kind, for type checkers and for people."""


def _parameter(setting: _native.Setting) -> Parameter:
    """Returns the parameter that a setting of the library becomes."""
    annotation, values = TYPES[setting.kind]
    if setting.choices:
        values %= ", ".join(map(repr, setting.choices))
    parameter = Parameter(setting.name, annotation, values, setting.default, setting.doc + ".", setting.learn_flag)
    extended = dict(EXTENDED.get(setting.name, {}))
    if "doc" in extended:
        extended["doc"] = f"{parameter.doc} {extended['doc']}"
    return replace(parameter, **extended)


def _in_order(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Returns the parameters that have a position in its order, then the others as they come."""
    by_name = {parameter.name: parameter for parameter in parameters}
    first = [by_name.pop(name) for name in POSITIONS]
    return (*first, *by_name.values())


SETTINGS = {setting.name: setting for setting in _native.settings() if setting.is_parameter}
"""The settings of the library that are parameters, by name."""

PARAMETERS = _in_order((*map(_parameter, SETTINGS.values()), *OWN))
"""All parameters, in the order of the signature."""


def signature() -> inspect.Signature:
    """Returns the signature of the constructor."""
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        inspect.Parameter(
            parameter.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if parameter.name in POSITIONS else inspect.Parameter.KEYWORD_ONLY,
            default=parameter.default,
            annotation=parameter.annotation,
        )
        for parameter in PARAMETERS
    ]
    return inspect.Signature([itself, *parameters], return_annotation="None")


def documentation() -> str:
    """Returns the section on parameters of a docstring."""
    return "\n".join(["Parameters", "----------", *(parameter.documentation() for parameter in PARAMETERS)])


def before(section: str, text: str, doc: str | None) -> str | None:
    """Returns a docstring with a text before one of its sections; none where Python strips docstrings."""
    if doc is None:
        return None
    head, heading, rest = inspect.cleandoc(doc).partition(f"{section}\n{'-' * len(section)}\n")
    return f"{head}{text}\n\n{heading}{rest}"
