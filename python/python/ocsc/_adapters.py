"""Lets data of other libraries be data here: MNE-Python, torch and tifffile. None of them is imported unless its data are given.

What has a shape and can be indexed needs nothing of this: datasets of h5py, arrays of zarr, dask and xarray, memory maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Recorded(NamedTuple):
    """Holds what a recording says besides its values."""

    sfreq: float
    info: Any
    """An ``mne.Info`` of the channels that are read."""
    first_samp: int


class Adapted(NamedTuple):
    """Holds data that the readers understand, what their axes are if that is known, and what a recording says besides."""

    data: Any
    axes: str | None = None
    recorded: Recorded | None = None


def adapt(data: Any) -> Adapted:
    """Returns data of other libraries as the readers understand them; all others as they are."""
    if isinstance(data, (np.ndarray, list, tuple)):
        return Adapted(data)
    roots = {cls.__module__.partition(".")[0] for cls in type(data).__mro__}
    if "mne" in roots and hasattr(data, "info"):
        return _mne(data)
    if "torch" in roots:
        return Adapted(_torch(data))
    if "tifffile" in roots and hasattr(data, "pages"):
        return Adapted(_Pages(data.pages))
    return Adapted(data)


def is_tensor(value: Any) -> bool:
    """Returns whether a value is a tensor of torch."""
    return hasattr(value, "detach") and type(value).__module__.partition(".")[0] == "torch"


def tensor_values(tensor: Any) -> Array:
    """Returns the values of a tensor: without a copy if numpy has its type and it is in main memory."""
    plain = tensor.detach().cpu()
    values: Array = (plain.float() if str(plain.dtype) == "torch.bfloat16" else plain).numpy()
    return values


# torch


def _torch(data: Any) -> Any:
    if is_tensor(data):
        shares = data.device.type == "cpu" and str(data.dtype) != "torch.bfloat16"
        return tensor_values(data) if shares else _Tensor(data)
    if hasattr(data, "batch_sampler"):
        return _Loader(data)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return _Dataset(data)
    return _Stream(data) if hasattr(data, "__iter__") else data


def _sample(item: Any) -> Any:
    """Returns the sample of what a dataset holds: the first of several things, of which the others are labels."""
    return item[0] if isinstance(item, (tuple, list)) else item


class _Tensor:
    """Reads the samples of a tensor that numpy cannot see one by one, from a device or a type of its own."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.shape = tuple(tensor.shape)

    def __getitem__(self, index: Any) -> Array:
        return tensor_values(self._tensor[index])


class _Dataset:
    """Reads the samples of a dataset by number."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise IndexError(index)
        return _sample(self._dataset[index])


class _Stream:
    """Draws the samples of a dataset in its order; again from the beginning whenever it is asked to."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return map(_sample, self._dataset)


class _Loader:
    """Draws the samples of a DataLoader one after the other, out of its batches."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            samples = _sample(batch)
            if self._loader.batch_sampler is None:
                yield samples
            else:
                yield from samples


# MNE-Python


def _mne(data: Any) -> Adapted:
    import mne  # pyright: ignore[reportMissingImports]

    picks = _channels(data.info, mne)
    info = mne.pick_info(data.info, picks)
    rate = float(info["sfreq"])
    if hasattr(data, "first_samp"):
        return Adapted(_Raw(data, picks), "CW", Recorded(rate, info, int(data.first_samp)))
    if hasattr(data, "drop_bad"):
        if data.preload:
            return Adapted(data.get_data(picks=picks, copy=False), "NCW", Recorded(rate, info, 0))
        return Adapted(_Epochs(data, picks), "NCW", Recorded(rate, info, 0))
    if hasattr(data, "data"):
        return Adapted(np.asarray(data.data)[picks], "CW", Recorded(rate, info, 0))
    raise TypeError(f"X: expected Raw, Epochs or Evoked of MNE, found {type(data).__name__}")


def _channels(info: Any, mne: Any) -> Array:
    """Returns the numbers of the good channels with data; of all good ones but triggers where none is of these types."""
    kinds = ("meg", "eeg", "csd", "seeg", "ecog", "dbs", "fnirs")
    picks: Array = mne.pick_types(info, **dict.fromkeys(kinds, True), exclude="bads")
    if len(picks) == 0:
        good = [i for i, name in enumerate(info["ch_names"]) if name not in info["bads"]]
        picks = np.array([i for i in good if mne.channel_type(info, i) != "stim"], int)
    if len(picks) == 0:
        raise ValueError("X: expected channels that are not marked as bad, found none")
    return picks


class _Raw:
    """Reads parts of a recording (channels, values) from where MNE has it."""

    def __init__(self, raw: Any, picks: Array) -> None:
        self._raw = raw
        self._picks = picks
        self.shape = (len(picks), int(raw.n_times))
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, index: Any) -> Array:
        _, along = index
        start, stop, _ = along.indices(self.shape[1])
        values: Array = self._raw.get_data(picks=self._picks, start=start, stop=stop)
        return values


class _Epochs:
    """Reads epochs (channels, values) that are not in memory, one by one."""

    def __init__(self, epochs: Any, picks: Array) -> None:
        # How many there are is known only after bad ones are dropped; not from those of the user.
        self._epochs = epochs.copy().drop_bad(verbose="error")
        self._picks = picks
        self.shape = (len(self._epochs), len(picks), len(epochs.times))
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, index: Any) -> Array:
        number, *along = index if isinstance(index, tuple) else (index,)
        values = self._epochs[int(number)].get_data(picks=self._picks, copy=False, verbose="error")[0]
        part: Array = values[tuple(along)]
        return part


# tifffile


class _Pages:
    """Reads the pages of a TIFF file one by one."""

    def __init__(self, pages: Any) -> None:
        self._pages = pages

    def __len__(self) -> int:
        return len(self._pages)

    def __getitem__(self, index: int) -> Array:
        values: Array = self._pages[index].asarray()
        return values
