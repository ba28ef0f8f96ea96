"""The native half, for type checkers. Users import from `ocsc`."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ._step import Step

_Array = npt.NDArray[Any]
_Item = tuple[_Array, _Array | None, _Array | None]
_Common = tuple[_Array | None, bool, int, int | None]
_Reader = Callable[[int], _Item]

class LivePage:
    def __init__(self) -> None: ...
    @property
    def url(self) -> str: ...

class Learner:
    def __init__(self, settings: dict[str, Any], init: str | _Array, beta_ratio: float | None) -> None: ...
    def fit(
        self,
        reader: _Reader,
        length: int,
        watcher: Callable[[Step], bool] | None,
        stop_tol: float | None,
        time_limit: float | None,
        threads: int | None,
        memory_limit: int | None,
        sizes: list[tuple[int, tuple[int, int, int, int]]],
        page: LivePage | None,
    ) -> None: ...
    def fit_stream(
        self,
        stream: Callable[[int], Sequence[_Item]],
        passes: int,
        watcher: Callable[[Step], bool] | None,
        stop_tol: float | None,
        time_limit: float | None,
        threads: int | None,
        memory_limit: int | None,
        page: LivePage | None,
    ) -> None: ...
    @property
    def is_started(self) -> bool: ...
    @property
    def n_steps(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def sparsity(self) -> tuple[int, int, int, int]: ...
    @property
    def missed(self) -> tuple[int, float]: ...
    def filters(self) -> _Array: ...
    def settings(self) -> dict[str, Any]: ...
    def history(self) -> dict[str, _Array]: ...
    def change(self, settings: dict[str, Any]) -> None: ...
    def save(self, path: str | os.PathLike[str], settings: dict[str, Any] | None) -> None: ...
    def save_checkpoint(self, path: str | os.PathLike[str]) -> None: ...
    def dumps(self) -> bytes: ...

class Setting:
    name: str
    doc: str
    kind: str
    choices: list[str]
    default: Any
    methods: list[str]
    is_recorded: bool
    is_parameter: bool
    is_in_coding: bool
    is_in_learning: bool
    ends_learning: bool
    learn_flag: str | None
    code_flag: str | None

def axes(text: str) -> str: ...
def batch_methods() -> list[str]: ...
def beta_max(
    settings: dict[str, Any], filters: _Array, reader: _Reader, length: int, threads: int | None
) -> list[float]: ...
def code(
    settings: dict[str, Any], filters: _Array, reader: _Reader, length: int, threads: int | None
) -> dict[str, Any]: ...
def default_ratio() -> float: ...
def evaluate(
    settings: dict[str, Any],
    filters: _Array,
    reader: _Reader,
    length: int,
    tol: float | None,
    threads: int | None,
) -> dict[str, float]: ...
def events(
    filters: _Array,
    boundary: str,
    shape: tuple[int, int, int],
    filter: npt.NDArray[np.int64],
    position: npt.NDArray[np.int64],
    value: npt.NDArray[np.float64],
    energy: float,
    threshold: float,
    min_distance: tuple[int, int, int] | None,
    align: str,
) -> dict[str, _Array]: ...
def filters_last(filters: _Array) -> str | None: ...
def free_memory() -> int | None: ...
def heldout(
    settings: dict[str, Any],
    filters: _Array,
    reader: _Reader,
    length: int,
    hidden: float,
    seed: int,
    threads: int | None,
) -> float: ...
def load(path: str | os.PathLike[str]) -> Learner: ...
def loads(bytes: bytes, history: dict[str, _Array]) -> Learner: ...
def methods() -> list[tuple[str, str]]: ...
def denoise(item: _Item, noise: str, amount: float | None, common: _Common) -> npt.NDArray[np.float32]: ...
def inpaint(item: _Item, common: _Common) -> npt.NDArray[np.float32]: ...
def deblur(
    item: _Item, kernel: _Item | None, deviation: float, sigma: float | None, common: _Common
) -> npt.NDArray[np.float32]: ...
def upscale(item: _Item, factor: int, common: _Common) -> npt.NDArray[np.float32]: ...
def demosaic(item: _Item, pattern: str, common: _Common) -> npt.NDArray[np.float32]: ...
def mse(reference: _Item, estimate: _Item) -> float: ...
def noise_of(item: _Item) -> float: ...
def doubt_of_sigma(item: _Item, sigma: float) -> tuple[str, float, float] | None: ...
def prepare(steps: str, item: _Item) -> npt.NDArray[np.float64]: ...
def psnr(reference: _Item, estimate: _Item, peak: float) -> float: ...
def own_filters(
    filters: _Array, base: npt.NDArray[np.int64], mixing: npt.NDArray[np.float64], is_single: bool
) -> _Array: ...
def path(
    settings: dict[str, Any], filters: _Array, reader: _Reader, length: int, betas: list[float], threads: int | None
) -> list[dict[str, Any]]: ...
def reconstruct(
    settings: dict[str, Any],
    filters: _Array,
    shape: tuple[int, int, int],
    filter: npt.NDArray[np.int64],
    position: npt.NDArray[np.int64],
    value: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...
def replace_file(path: str | os.PathLike[str], fill: Callable[[Path], None]) -> None: ...
def settings() -> list[Setting]: ...
def ssim(reference: _Item, estimate: _Item, peak: float) -> float: ...
def stitch_events(
    filter: npt.NDArray[np.int64],
    position: npt.NDArray[np.int64],
    amplitude: npt.NDArray[np.float64],
    energy: npt.NDArray[np.float64],
    counts: list[int],
    starts: list[int],
    energies: list[float],
    distance: int,
) -> dict[str, _Array]: ...
def tune(
    settings: dict[str, Any],
    start: str | _Array,
    is_model: bool,
    reader: _Reader,
    length: int,
    hidden: float,
    ratios: list[float] | None,
    learned_at: float | None,
    relearn: bool,
    samples: int | None,
    threads: int | None,
) -> str: ...
def undo(steps: str, original: _Item, reconstruction: _Array) -> npt.NDArray[np.float64]: ...
def version() -> str: ...
