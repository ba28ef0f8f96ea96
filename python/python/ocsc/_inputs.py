"""Turns whatever users call data into readers and streams of single samples.

The native half takes samples as items ``(values, mask, weights of coefficients)`` with the axes (channel, depth, height, width). All arrays
here are views: the one copy of a sample is made when the native half takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ._adapters import Adapted, Recorded, adapt, is_tensor, tensor_values
from ._codes import Code, Codes
from ._errors import counted
from ._native import axes as parse_axes

Array = npt.NDArray[Any]
Item = tuple[Array, "Array | None", "Array | None"]

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


class Layout:
    """Knows what the axes of one sample mean, and how many of them are spatial."""

    def __init__(self, letters: str) -> None:
        self.letters = letters
        self.rank = 3 if "D" in letters else 2 if "H" in letters else 1
        present = [letter for letter in "CDHW" if letter in letters]
        self._order = [letters.index(letter) for letter in present]
        self._insert = tuple(slice(None) if letter in letters else None for letter in "CDHW")
        self._drop = tuple(slice(None) if letter in letters else 0 for letter in "CDHW")
        self._back = [present.index(letter) for letter in letters]

    def turn(self, sample: Array) -> Array:
        """Returns a view of the sample as (channel, depth, height, width)."""
        view: Array = sample.transpose(self._order)[self._insert]
        return view

    def turn_back(self, sample: Array) -> Array:
        """Returns a view of a sample (channel, depth, height, width) with the user's axes."""
        view: Array = sample[self._drop].transpose(self._back)
        return view

    def without_channels(self) -> Layout:
        """Returns the layout of masks that hold for all channels."""
        return Layout(self.letters.replace("C", ""))


def choose_axes(axes: str | None, ndim: int, rank: int | None, stacked: bool) -> str:
    """Returns the letters of an array with ``ndim`` axes: with an N if it is ``stacked``, without for a single sample.

    ``rank`` is the number of spatial axes that the filters have, if it is known.
    """
    if axes is not None:
        letters = parse_axes(axes)
        own = letters.replace("N", "")
        if not stacked:
            letters = own
        elif "N" not in letters and len(letters) == ndim - 1:
            letters = "N" + letters
        if len(letters) != ndim:
            what = "X" if stacked else "a sample"
            raise ValueError(f"axes {axes!r} names {len(letters)} axes, but {what} has {ndim}; expected as many")
        found = Layout(own).rank
        if rank is not None and found != rank:
            raise ValueError(
                f"filter_shape: expected {found} lengths, as axes {axes!r} names {found} spatial axes, found {rank} (without "
                "filter_shape it is (11, 11), for images)"
            )
        return letters
    own_ndim = ndim - stacked
    wanted = rank if rank is not None else own_ndim
    if own_ndim == wanted and wanted in (SPATIAL if rank is not None else (1, 2)):
        return "N" * stacked + SPATIAL[wanted]
    n, what = ("N", "X") if stacked else ("", "a sample")
    shapes = ["(" + ", ".join(n + SPATIAL[r]) + ("," if len(n) + r == 1 else "") + ")" for r in ([rank] if rank else [1, 2])]
    counts = [str(r + stacked) for r in ([rank] if rank else [1, 2])]
    message = f"{what}: expected {' or '.join(counts)} axes {' or '.join(shapes)}, found {ndim}"
    if stacked and rank is not None and ndim == rank:
        raise ValueError(f"{message}. Reshape your data: one sample is X[None]; sets of signals take a filter_shape of one length")
    if own_ndim == wanted + 1 or rank is None:
        spatial = SPATIAL.get(wanted, "HW") if rank is not None else "HW"
        volumes = f"; for volumes say axes={n + 'DHW'!r}" if rank is None else ""
        raise ValueError(
            f"{message}; with channels, say where they are: axes={n + 'C' + spatial!r} or {n + spatial + 'C'!r}{volumes}"
        )
    raise ValueError(f"{message}; say what they are with axes, e.g. {n + 'C' + SPATIAL.get(wanted, 'HW')!r}")


def numeric(sample: Any, what: str = "X") -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Returns values in f32 or f64, and which were observed if it is a masked array; views where they can be."""
    if isinstance(sample, np.ma.MaskedArray):
        mask: npt.NDArray[np.bool_] | None = ~np.ma.getmaskarray(sample)
        values: Array = np.asarray(sample.data)
    else:
        mask = None
        values = tensor_values(sample) if is_tensor(sample) else np.asarray(sample)
    if values.dtype == np.float32 or values.dtype == np.float64:
        return (values if values.flags.aligned else values.copy()), mask
    if values.dtype.kind == "c":
        raise ValueError(f"{what}: Complex data not supported; expected real numbers, found {values.dtype}")
    if values.dtype.kind in "mMV":
        raise TypeError(f"{what}: expected real numbers, found an array of {values.dtype}; pick or convert the numbers in it")
    return values.astype(np.float64), mask


def truths(mask: Any) -> Array:
    """Returns a mask of truths, where nonzero is observed, or weights from 0 to 1, where numbers in between count less."""
    given = np.asarray(mask)
    if given.dtype.kind != "f":
        return given.astype(bool, copy=False)
    if not bool(np.all((given >= 0) & (given <= 1))):
        raise ValueError(
            "mask: expected truths, or weights from 0 (unobserved) to 1 (counts fully), found numbers beyond them; for a mask of "
            "other numbers give mask != 0"
        )
    return given.astype(bool) if bool(np.all((given == 0) | (given == 1))) else given.astype(np.float64)


class Reader:
    """Reads samples by number: ``len(reader)`` is how many there are, ``reader(i)`` the item of one."""

    def __init__(
        self,
        get: Callable[[int], Any],
        length: int,
        layout: Layout,
        mask: Callable[[int], Any] | None,
        dtype: np.dtype[Any] | None,
        shapes: Sequence[tuple[int, ...]] | None,
        is_one: bool = False,
        is_stack: bool = False,
        part: Callable[[int, slice], Any] | None = None,
    ) -> None:
        self._get = get
        self._part = part
        self._length = length
        self._mask = mask
        self.layout = layout
        self.dtype = dtype
        self.shapes = shapes
        """Of the samples, as users write them, where they are known without reading; one stands for all."""
        self.is_one = is_one
        """Whether what was given is a sample, and no set of one."""
        self.is_stack = is_stack
        """Whether what was given is an array with an axis of samples."""
        self.coefficients: Array | None = None
        """The weights of the codes' coefficients in the penalty, flat."""
        self.windows: Array | None = None
        """Where samples were cut from: (recording, first value) of each; none if they are whole."""
        self.recorded: Recorded | None = None
        """What a recording says besides its values."""

    def __len__(self) -> int:
        return self._length

    def cut(self, length: int) -> Reader:
        """Returns a reader of windows of this length along W, as the program cuts them: a rest shorter than half a window goes with
        the last."""
        if self.layout.rank > 1:
            raise ValueError(f"window: expected signals, which have no H and D, found samples with the axes {self.layout.letters}")
        along = self.layout.letters.index("W")
        shapes = self.shapes
        if shapes is None:
            shapes = [np.shape(self._get(i)) for i in range(self._length)]
        totals = [shapes[i if len(shapes) > 1 else 0][along] for i in range(self._length)]
        pieces: list[tuple[int, slice]] = []
        for number, total in enumerate(totals):
            rest = total % length
            count = max(total // length + int(rest >= length - rest), 1)
            ends = [*(length * (i + 1) for i in range(count - 1)), total]
            pieces.extend((number, slice(length * i, end)) for i, end in enumerate(ends))

        def piece(values: Any, index: int) -> Any:
            # Masks may lack the channels, wherever those are.
            letters = self.layout.letters if np.ndim(values) == len(self.layout.letters) else self.layout.letters.replace("C", "")
            return values[tuple(pieces[index][1] if letter == "W" else slice(None) for letter in letters)]

        def get(index: int) -> Any:
            # Of what is not in memory no more than the window is read.
            return piece(self._get(pieces[index][0]), index) if self._part is None else self._part(*pieces[index])

        own_mask = self._mask
        mask = None if own_mask is None else lambda index: piece(np.asarray(own_mask(pieces[index][0])), index)
        lengths = [tuple(part.stop - part.start if i == along else n for i, n in enumerate(shapes[0])) for _, part in pieces]
        windows = Reader(get, len(pieces), self.layout, mask, self.dtype, lengths, self.is_one, self.is_stack)
        windows.windows = np.array([(number, part.start) for number, part in pieces], np.int64)
        return windows

    def sizes(self) -> list[tuple[int, tuple[int, int, int, int]]]:
        """Returns the shapes (channel, depth, height, width) that occur, as far as they are known without reading, each with the
        number of the first sample that has it."""
        sizes: dict[tuple[int, int, int, int], int] = {}
        for i, shape in enumerate(self.shapes or []):
            if len(shape) == len(self.layout.letters):
                lengths = dict(zip(self.layout.letters, shape))
                sizes.setdefault((lengths.get("C", 1), lengths.get("D", 1), lengths.get("H", 1), lengths["W"]), i)
        return [(i, size) for size, i in sizes.items()]

    def __call__(self, index: int) -> Item:
        mask = None if self._mask is None else self._mask(index)
        return *item(self._get(index), self.layout, mask, f"X[{index}]")[:2], self.coefficients


def item(sample: Any, layout: Layout, mask: Any, what: str) -> Item:
    """Returns what the native half takes, of one sample and its mask."""
    values, seen = numeric(sample, what)
    if values.ndim != len(layout.letters):
        raise ValueError(f"{what}: expected {len(layout.letters)} axes ({layout.letters}), found shape {values.shape}")
    observed: Array | None = None if seen is None else layout.turn(seen)
    if mask is not None:
        given = truths(mask)
        own = layout if given.ndim == values.ndim else layout.without_channels()
        if given.ndim != len(own.letters) or (own is layout and given.shape != values.shape):
            raise ValueError(f"mask of {what}: expected shape {values.shape}, or that without channels, found {given.shape}")
        turned = own.turn(given)
        if own is not layout and turned.shape[1:] != layout.turn(values).shape[1:]:
            raise ValueError(f"mask of {what}: expected the shape of {values.shape} without channels, found {given.shape}")
        if observed is None:
            observed = turned
        else:
            observed = np.logical_and(observed, turned) if turned.dtype == bool else observed * turned
    return layout.turn(values), observed, None


class Stream:
    """Draws samples one after the other: ``stream(n)`` are the items of the next n."""

    def __init__(self, source: Iterable[Any], axes: str | None, rank: int | None, mask: Any) -> None:
        self._source = source
        self._once = isinstance(source, Iterator)
        self._rank = rank
        self._axes = axes
        self._mask = None if mask is None else truths(mask)
        self._samples: Iterator[Any] = iter(source)
        self._taken = 0
        self.coefficients: Array | None = None
        """The weights of the codes' coefficients in the penalty, flat."""
        self.recorded: Recorded | None = None
        """What a recording says besides its values."""
        self.layout, self.dtype = self._peek()

    def _peek(self) -> tuple[Layout, np.dtype[Any]]:
        """Returns the layout and the type of the first sample, which stays in the stream."""
        first = next(self._samples, None)
        if first is None:
            raise ValueError("X: expected at least one sample, found none")
        self._samples = chain([first], self._samples)
        values, _ = numeric(first, "the first sample of X")
        return Layout(choose_axes(self._axes, values.ndim, self._rank, stacked=False)), values.dtype

    def check_passes(self, passes: int) -> None:
        """Checks that the samples can be visited in so many passes."""
        if passes > 1 and self._once:
            raise ValueError(
                f"passes: expected 1, as a generator or iterator can be read once, found {passes}; give an array, a list, "
                "or an object whose __iter__ begins anew"
            )

    def __call__(self, n: int) -> list[Item]:
        items = []
        for sample in islice(self._samples, n):
            values, mask, _ = item(sample, self.layout, self._mask, f"sample {self._taken} of X")
            items.append((values, mask, self.coefficients))
            self._taken += 1
        return items

    def rewind(self) -> None:
        """Begins again."""
        self._samples = iter(self._source)
        self._taken = 0


class InOrder:
    """Draws the samples of a reader in its order, as a `Stream` does."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self._next = 0

    def __call__(self, n: int) -> list[Item]:
        begin = self._next
        self._next = min(begin + n, len(self._source))
        return [self._source(i) for i in range(begin, self._next)]


def is_stream(data: Any) -> bool:
    """Returns whether data come one after the other only."""
    if isinstance(data, (np.ndarray, list, tuple, str, bytes)) or hasattr(data, "shape") or is_array(data):
        return False
    indexable = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    return hasattr(data, "__iter__") and not indexable and not isinstance(data, (set, frozenset))


def is_array(data: Any) -> bool:
    """Returns whether data are an array in memory, of whatever library. What has a shape and samples to pick may be on disk."""
    lazy = hasattr(data, "shape") and hasattr(data, "__getitem__")
    known = any(hasattr(data, name) for name in ("__array_interface__", "__dlpack__", "iloc"))
    return known or (hasattr(data, "__array__") and not lazy)


def reader(data: Any, axes: str | None, rank: int | None, mask: Any = None, single: bool = False) -> Reader:
    """Returns a reader of anything indexable; with ``single``, an array may also be one sample."""
    if isinstance(data, (Code, Codes)):
        raise TypeError(f"X: expected samples, found {type(data).__name__}; inverse_transform and reconstruct take codes")
    if hasattr(data, "tocsr") or hasattr(data, "toarray"):
        raise TypeError("X: expected dense samples, found a sparse array; sparse data must be made dense with X.toarray()")
    mapping = hasattr(data, "keys") and not hasattr(data, "shape")
    if isinstance(data, (str, bytes)) or mapping or not (hasattr(data, "__getitem__") or is_array(data)):
        raise TypeError(
            f"X: expected an array (n, H, W), a list of arrays or an iterator, found {type(data).__name__}"
        )
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1:
        data = list(data)
    if isinstance(data, np.ndarray) or is_array(data) or hasattr(data, "shape"):
        return stack_reader(data, axes, rank, mask, single)
    if not hasattr(data, "__len__"):
        raise TypeError(f"X: expected an object with a length, found {type(data).__name__}")
    if len(data) == 0:
        raise ValueError("X: Found array with 0 samples; expected at least one")
    first, _ = numeric(data[0], "X[0]")
    if first.ndim == 0:
        raise ValueError("X: Expected 2D array or more, got 1D array instead; Reshape your data: one sample is X[None]")
    layout = Layout(choose_axes(axes, first.ndim, rank, stacked=False))
    shapes = [tuple(x.shape) for x in data] if all(hasattr(x, "shape") for x in data) else None
    return Reader(data.__getitem__, len(data), layout, list_masks(mask, layout, len(data)), first.dtype, shapes)


def split_weights(weights: Any, source: Reader | Stream) -> Any:
    """Returns what the setting `weights` is to be: numbers per filter, a rule, or None. An array of more axes holds a weight for every
    coefficient of a code, and goes with the samples."""
    if weights is None or isinstance(weights, str):
        return weights
    given = np.asarray(weights, np.float64)
    if given.ndim == 1:
        return weights
    source.coefficients = np.ascontiguousarray(given).ravel()
    return None


def source_of(
    X: Any,
    axes: str | None,
    rank: int | None,
    mask: Any,
    window: Any = None,
    sfreq: Any = None,
    single: bool = False,
) -> Reader | Stream:
    """Returns a reader or a stream of whatever users call data; in windows, if there are to be some, of a number of values or of seconds
    at this rate or at that of the recording."""
    data, known, recorded = X if isinstance(X, Adapted) else adapt(X)
    axes = known if axes is None else axes
    if recorded is not None:
        if sfreq is not None and not np.isclose(sfreq, recorded.sfreq):
            raise ValueError(f"sfreq: expected {recorded.sfreq:g}, as X says, or None, found {sfreq!r}")
        sfreq = recorded.sfreq
    length = window_length(window, sfreq)
    source: Reader | Stream
    if is_stream(data):
        if length is not None:
            raise ValueError("window: expected arrays or lists to cut, found an iterator; draw windows from it instead")
        source = Stream(data, axes, rank, mask)
    else:
        source = reader(data, axes, rank, mask, single)
        source = source if length is None else source.cut(length)
    source.recorded = recorded
    return source


def rate_of(sfreq: Any, source: Reader | Stream) -> Any:
    """Returns values per second: what the user says, or else what the recording does."""
    return source.recorded.sfreq if sfreq is None and source.recorded is not None else sfreq


def window_length(window: Any, sfreq: Any) -> int | None:
    """Returns the values of a window: a number of them, or seconds such as '5s', for which the rate must be known."""
    if sfreq is not None and not (isinstance(sfreq, (int, float, np.number)) and np.isfinite(sfreq) and sfreq > 0):
        raise ValueError(f"sfreq: expected values per second, above 0, found {sfreq!r}")
    if window is None:
        return None
    if isinstance(window, str) and window.endswith("s"):
        try:
            seconds = float(window[:-1])
        except ValueError:
            seconds = np.nan
        if np.isfinite(seconds) and seconds > 0:
            if sfreq is None:
                raise ValueError(f"window: expected sfreq, the values per second, beside {window!r}, or a number of values")
            return max(1, round(seconds * float(sfreq)))
    elif isinstance(window, (int, np.integer)) and not isinstance(window, bool) and window > 0:
        return int(window)
    raise ValueError(f"window: expected a number of values such as 2048, or seconds such as '5s', found {window!r}")


def stack_reader(data: Any, axes: str | None, rank: int | None, mask: Any, single: bool) -> Reader:
    """Returns a reader of an array of samples. Arrays that are not in memory are read sample by sample."""
    if not isinstance(data, np.ndarray) and not is_array(data):
        return stored_reader(data, axes, rank, mask, single)
    array: Any = data if isinstance(data, np.ndarray) else np.asarray(data)
    dtype = array.dtype
    if array.ndim == 0:
        raise ValueError("X: Expected 2D array or more, got scalar array instead; Reshape your data")
    check_numbers(dtype)
    if dtype.kind in "OUS":
        array, dtype = array.astype(np.float64), np.dtype(np.float64)
    letters = stack_letters(axes, array.ndim, rank, single)
    is_one = "N" not in letters
    if is_one:
        array, letters = array[None], "N" + letters
        mask = mask if mask is None else np.asarray(mask)[None]
    if letters[0] != "N":
        array = np.moveaxis(array, letters.index("N"), 0)
    layout = Layout(letters.replace("N", ""))
    check_sizes(array.shape[0], array.shape[1:], array.shape)
    masks = stack_masks(mask, letters, array.shape[0])
    return Reader(array.__getitem__, array.shape[0], layout, masks, dtype, [tuple(array.shape[1:])], is_one, not is_one)


def stored_reader(data: Any, axes: str | None, rank: int | None, mask: Any, single: bool) -> Reader:
    """Returns a reader of an array that is not in memory. A sample, or a window of one, is one index over all axes."""
    shape = tuple(int(n) for n in data.shape)
    try:
        dtype = np.dtype(data.dtype)
        check_numbers(dtype)
    except (AttributeError, TypeError) as error:
        if isinstance(error, TypeError) and "expected real numbers" in str(error):
            raise
        dtype = None
    letters = stack_letters(axes, len(shape), rank, single)
    is_one = "N" not in letters
    lengths = dict(zip(letters, shape))
    own = letters.replace("N", "")
    check_sizes(lengths.get("N", 1), tuple(lengths[letter] for letter in own), shape)

    def part(index: int, along: slice) -> Any:
        chosen = {"N": index, "W": along}
        return data[tuple(chosen.get(letter, slice(None)) for letter in letters)]

    def get(index: int) -> Any:
        # Objects of users may know no more than numbers.
        return data[index] if letters[0] == "N" else part(index, slice(None))

    given = mask if mask is None or not is_one else np.asarray(mask)[None]
    masks = stack_masks(given, letters if not is_one else "N" + letters, lengths.get("N", 1))
    samples = [tuple(lengths[letter] for letter in own)]
    return Reader(get, lengths.get("N", 1), Layout(own), masks, dtype, samples, is_one, not is_one, part)


def check_numbers(dtype: np.dtype[Any]) -> None:
    """Refuses arrays of anything but real numbers."""
    if dtype.kind == "c":
        raise ValueError("X: Complex data not supported; expected real numbers")
    if dtype.kind in "mMV":
        raise TypeError(f"X: expected real numbers, found an array of {dtype}; pick or convert the numbers in it")


def check_sizes(length: int, sample: Sequence[int], shape: Sequence[int]) -> None:
    """Refuses arrays without samples, or with samples without values."""
    for count, what in ((length, "sample"), (0 if 0 in sample else 1, "feature")):
        if count == 0:
            raise ValueError(f"X: Found array with 0 {what}(s) (shape={tuple(shape)}) while a minimum of 1 is required.")


def stack_letters(axes: str | None, ndim: int, rank: int | None, single: bool) -> str:
    """Returns the letters of an array; without an N if it is one sample."""
    own = None if axes is None else parse_axes(axes)
    if own is not None and "N" not in own and len(own) == ndim:
        return choose_axes(axes, ndim, rank, stacked=False)
    if single and (axes is None and ndim == rank or own is not None and len(own.replace("N", "")) == ndim):
        return choose_axes(axes, ndim, rank, stacked=False)
    return choose_axes(axes, ndim, rank, stacked=True)


def stack_masks(mask: Any, letters: str, length: int) -> Callable[[int], Any] | None:
    """Returns the masks of an array's samples: one for each, or one for all; for all channels, or for each."""
    if mask is None:
        return None
    given = truths(mask)
    for left_out in ("", "C", "N", "NC"):
        own = "".join(letter for letter in letters if letter not in left_out)
        if len(own) != given.ndim:
            continue
        if "N" not in own:
            return lambda index: given
        each = np.moveaxis(given, own.index("N"), 0)
        if each.shape[0] not in (1, length):
            raise ValueError(f"mask: expected one for each of {counted(length, 'sample')}, found {each.shape[0]}")
        return (lambda index: each[0]) if each.shape[0] == 1 else each.__getitem__
    raise ValueError(f"mask: expected the axes {letters} of X, or those without N or C, found shape {given.shape}")


def list_masks(mask: Any, layout: Layout, length: int) -> Callable[[int], Any] | None:
    """Returns the masks of a list of samples: a list, or one array for all."""
    if mask is None:
        return None
    if isinstance(mask, (list, tuple)):
        if len(mask) != length:
            raise ValueError(f"mask: expected one for each of {counted(length, 'sample')}, found {len(mask)}")
        return mask.__getitem__
    return stack_masks(mask, "N" + layout.letters, length)
