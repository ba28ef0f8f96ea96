"""Defines the estimator `OnlineCSC`. Its constructor is made in ``_parameters.py``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _native
from ._changes import CODING, COMPARED, coding_changes, explanation, fixed, learning_changes, same
from ._codes import Code, Codes
from ._coding import assemble, check_codes, code_all, is_single, reconstruct_one, with_channels
from ._convert import bytes_of, dtype_of, filters_of, lengths, positive, rank_of, seed_of, threads_of
from ._declarations import PARAMETERS, SETTINGS, before, documentation
from ._errors import counted, not_fitted, warn_of_codes, warn_of_sparsity
from ._frames import frame_of
from ._inputs import (
    SPATIAL,
    Array,
    InOrder,
    Layout,
    Reader,
    Stream,
    is_stream,
    rate_of,
    source_of,
    split_weights,
)
from ._live import is_live, live_page
from ._parameters import Parameters
from ._progress import Bar
from ._rank1 import Rank1, rank1_of
from ._step import Step
from ._tune import heldout_score

PICKLE = 1
"""The version of pickles; one more whenever older ones cannot be read."""

MOST_SHOWN = 16
"""Of arrays with more values, an estimator's text gives the shape alone."""

RECORD = np.dtype(
    [
        ("step", np.int64),
        ("pass", np.int64),
        ("samples", np.int64),
        ("seconds", np.float64),
        ("objective", np.float64),
        ("gap", np.float64),
        ("nonzeros", np.float64),
        ("dictionary_change", np.float64),
        ("reseeded", np.int64),
    ]
)


class OnlineCSC(Parameters):
    """Learns convolutional filters from samples, one after the other, and codes new ones.

    Minimises, over filters D_k of norm at most 1 and sparse codes Z_i,

    (1/N) sum_i  1/2 || x_i - sum_k D_k * Z_ik ||^2 + beta ||Z_i||_1

    following Wang, Yao, Kwok, Ni, "Scalable Online Convolutional Sparse Coding", IEEE TIP 27(10), 2018. Memory depends
    neither on the number of samples nor, with the default method, on their size.

    Estimators can be pickled. Unpickling runs code, as it does with any pickle: read only pickles that you trust, and models of
    others with `ocsc.load`, which reads numbers alone.

    Attributes
    ----------
    filters_ : ndarray of shape (K, axes...) or (K, C, axes...)
        The filters, each of norm at most 1.
    beta_ : float
        The weight of the l1 norm that was used.
    n_steps_ : int
        Steps made, each with ``batch_size`` samples.
    n_samples_seen_ : int
        Samples learned from, over all passes.
    history_ : structured ndarray of shape (steps,)
        One record per step, with the fields of `Step`: ``history_["objective"]`` is a curve.
    objective_ : float
        The mean objective over the last pass, each sample coded against the dictionary of its time.
    gap_ : float
        The worst relative duality gap over the last pass.
    rank1_ : Rank1
        Each filter as a topography over channels times a waveform, with the share of its energy that the product has.
    n_features_in_ : int
        The length of signals, where X was an array (n, W).
    sfreq_ : float or None
        Values per second: ``sfreq``, or else what the data say, as those of MNE do.
    info_ : mne.Info
        Of the channels that were learned from, where X was a Raw, Epochs or Evoked of MNE.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsc import OnlineCSC
    >>> X = np.random.default_rng(0).standard_normal((4, 24, 24))
    >>> model = OnlineCSC(n_filters=6, filter_shape=(5, 5), beta=1.5).fit(X)
    >>> model.filters_.shape
    (6, 5, 5)
    >>> codes = model.transform(X)
    >>> bool(codes.gap.max() <= 0.01)
    True
    >>> model.inverse_transform(codes).shape
    (4, 24, 24)

    A stop by a callback:

    >>> model = OnlineCSC(n_filters=6, filter_shape=(5, 5), callback=lambda step: step["step"] == 2).fit(X)
    >>> model.n_steps_
    2
    """

    _learned: dict[str, Any]
    """Those parameters that may have been changed since learning began, as they were then."""

    # Learning

    def fit(self, X: Any, y: object = None, mask: Any = None) -> OnlineCSC:
        """Learns filters from samples, from the beginning.

        Samples of arrays and lists are visited in an order that ``random_state`` decides, anew in every pass, and read when
        they are needed; those of iterators in the order in which they come, and not one more than needed is drawn.

        Whatever ends a run early (Ctrl-C, an exception, a callback, ``time_limit``), what was learned up to there is kept.
        After Ctrl-C a step that takes long ends in the background: the estimator is as it was before that step, until the step
        has ended. `partial_fit`, a checkpoint and a pickle need the end of it and wait; Ctrl-C ends the waiting too.

        Warns with `ConvergenceWarning`, once, if codes did not reach ``tol`` on the way.

        Parameters
        ----------
        X : array, list of arrays, or iterable
            An array (n, H, W) of images, (n, W) of signals or (n, D, H, W) of volumes, as ``filter_shape`` says, or with other
            axes, as ``axes`` says; a list of samples, which may differ in size; or an iterator or generator of samples, for
            one pass. Anything that numpy understands: torch tensors, memory maps, masked arrays. Objects that have a shape
            or a length but are not in memory, such as datasets of h5py and arrays of zarr, dask and xarray, are read sample by
            sample, and with ``window`` window by window. Also an open TiffFile, whose pages are the samples; Raw, Epochs and
            Evoked of MNE, which know their axes and their rate; and a Dataset or DataLoader of torch.
        y : ignored
            For scikit-learn.
        mask : array or list of arrays, optional
            Which values were observed (true or nonzero), with the axes of X, or without its samples or channels axis. Values
            that were not have no influence; they may be NaN. The masks of masked arrays, where true means *not* observed,
            are heeded too.

        Returns
        -------
        OnlineCSC
            The estimator itself.
        """
        source = source_of(X, self.axes, rank_of(self.filter_shape), mask, self.window, self.sfreq)
        self._check_rank(source)
        learner = self._new_learner(source)
        total = None
        if isinstance(source, Stream):
            source.check_passes(self.passes)
        else:
            total = len(source) * self.passes
        self._run(learner, source, source, self.passes, total)
        return self

    def partial_fit(self, X: Any, y: object = None, mask: Any = None) -> OnlineCSC:
        """Learns from more samples, once, in their order.

        Goes on where `fit`, `partial_fit` or a checkpoint ended; from the filters of a finished model file with new statistics.
        Parameters that were changed since then take effect, or are refused, as `set_params` says. Only for methods that learn
        online.

        Parameters
        ----------
        X : array, list of arrays, or iterable
            As for `fit`, or an array that is a single sample.
        y : ignored
            For scikit-learn.
        mask : array or list of arrays, optional
            As for `fit`.

        Returns
        -------
        OnlineCSC
            The estimator itself.

        Examples
        --------
        >>> import numpy as np, ocsc
        >>> model = ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta=2.0)
        >>> rng = np.random.default_rng(0)
        >>> for _ in range(3):
        ...     model = model.partial_fit(rng.standard_normal((16, 16)))
        >>> model.n_steps_
        3
        """
        old: _native.Learner | None = getattr(self, "_learner", None)
        rank = rank_of(self.filter_shape) if old is None else self._layout.rank
        source = source_of(X, self.axes, rank, mask, self.window, self.sfreq, single=True)
        if old is None:
            self._check_rank(source)
        split_weights(self.weights, source)
        learner = self._new_learner(source) if old is None else self._changed_learner(old, source)
        method = self.method if old is None else old.settings()["method"]
        if method in _native.batch_methods():
            raise ValueError(f"method: expected one that learns online for partial_fit, found {method!r}; use fit")
        stream = source if isinstance(source, Stream) else InOrder(source)
        self._run(learner, source, stream, 1, None if isinstance(source, Stream) else len(source))
        return self

    def _new_learner(self, source: Reader | Stream) -> _native.Learner:
        """Returns a run that is about to begin; refuses bad settings."""
        rank = source.layout.rank
        self._check_features(source)
        settings = {name: getattr(self, name) for name, setting in SETTINGS.items() if setting.is_recorded}
        settings["beta"], ratio = self._beta()
        settings["filter_shape"] = lengths(self.filter_shape, rank)
        settings["weights"] = split_weights(self.weights, source)
        settings["random_state"] = seed_of(self.random_state)
        settings["dtype"] = dtype_of(self.dtype, source.dtype)
        settings["preprocess"] = self._steps(self.preprocess)
        init = filters_of(self.init, self.n_filters, self.filter_shape, rank)
        return _native.Learner(settings, init, ratio)

    def _steps(self, steps: str) -> str:
        """Returns the steps of preprocessing, with those that other parameters add."""
        if not self.per_channel or str(steps).endswith("per-channel"):
            return steps
        return "per-channel" if steps == "none" else f"{steps},per-channel"

    def _beta(self) -> tuple[Any, float | None]:
        """Returns beta, and the fraction that it is to be of the largest useful one, if it is."""
        if self.preset not in (None, "paper"):
            raise ValueError(f"preset: expected 'paper' or None, found {self.preset!r}")
        ratio = positive("beta_ratio", self.beta_ratio)
        if self.beta is not None and ratio is not None:
            raise ValueError(f"beta_ratio: expected None beside beta={self.beta!r}, or beta=None, found {self.beta_ratio!r}")
        if self.beta is None and ratio is None and self.preset is None:
            ratio = _native.default_ratio()
        return SETTINGS["beta"].default if self.beta is None else self.beta, ratio

    def _check_rank(self, source: Reader | Stream) -> None:
        """Checks that it is plain whether samples are images or signals with channels, where neither axes nor filters say so."""
        if self.axes is not None or np.ndim(self.filter_shape) > 0 or source.layout.rank == 1:
            return
        n, m = self.filter_shape, "N" if isinstance(source, Reader) and source.is_stack else ""
        raise ValueError(
            f"filter_shape: one length, {n}, does not say what the 2 axes of a sample are: expected filter_shape=({n}, {n}) or "
            f"axes={m + 'HW'!r} for images with filters of {n}x{n}, or axes={m + 'CW'!r} (channels first) or {m + 'WC'!r} (channels "
            f"last) for signals with channels and filters of {n}"
        )

    def _changed_learner(self, learner: _native.Learner, source: Reader | Stream) -> _native.Learner:
        """Returns the run to go on with, after parameters were changed; refuses what its statistics do not allow."""
        now = self._compared(self._layout.rank)
        settings = learner.settings()
        if not same(now["dtype"], self._learned["dtype"]) and dtype_of(self.dtype, source.dtype) != settings["dtype"]:
            raise fixed("dtype", settings["dtype"], self.dtype)
        changes = learning_changes(now, self._learned)
        if changes:
            learner.change({**settings, **changes})
            self._learned = {**self._learned, **changes, "beta_ratio": self.beta_ratio}
        return learner

    def _compared(self, rank: int) -> dict[str, Any]:
        """Returns the parameters that may have been changed since learning began, for filters of ``rank`` axes."""
        params = {name: getattr(self, name) for name in COMPARED}
        return {**params, "filter_shape": tuple(lengths(self.filter_shape, rank))}

    def _check_features(self, source: Reader | Stream) -> None:
        """Checks that signals are as long as the filters, in scikit-learn's words. Other samples are refused when they are read."""
        shapes = source.shapes if isinstance(source, Reader) else None
        if source.layout.letters == "W" and shapes is not None and isinstance(self.init, str):
            shortest, least = min(shape[0] for shape in shapes), lengths(self.filter_shape, 1)[0]
            if shortest < least:
                raise ValueError(
                    f"X: Found array with {shortest} feature(s) while a minimum of {least} is required, the length of the "
                    "filters (filter_shape)"
                )

    def _run(
        self, learner: _native.Learner, source: Reader | Stream, drawn: Any, passes: int, total: int | None
    ) -> None:
        """Learns from what is ``drawn`` from the source, with progress bar and callback."""
        is_new = getattr(self, "_learner", None) is not learner
        learned = self._compared(source.layout.rank) if is_new else self._learned
        done = learner.n_samples if learner.is_started else 0
        page = live_page() if is_live(self.verbose) else None
        bar = Bar(None if total is None else done + total) if self.verbose else None
        callback = self.callback

        def watch(step: Step) -> bool:
            if bar is not None:
                bar.show(step)
            if callback is None:
                return False
            # Whatever it looks at is as it was after this step.
            self._adopt(learner, source, learned)
            return bool(callback(step))

        watcher = None if bar is None and callback is None else watch
        limits = (
            positive("stop_tol", self.stop_tol),
            positive("time_limit", self.time_limit),
            threads_of(self.threads),
            bytes_of(self.memory_limit),
        )
        try:
            if isinstance(drawn, Reader):
                learner.fit(drawn, len(drawn), watcher, *limits, drawn.sizes(), page)
            else:
                learner.fit_stream(drawn, passes, watcher, *limits, page)
        finally:
            # Not if it was refused at the door: then the estimator is as before.
            if learner.is_started:
                self._adopt(learner, source, learned)
            if bar is not None:
                bar.close()
        warn_of_sparsity(*learner.sparsity, learner.settings()["beta"])
        missed, worst = learner.missed
        if missed:
            warn_of_codes(
                f"the codes of {counted(missed, 'step')} did not reach the tolerance {learner.settings()['tol']} (the worst relative gap "
                f"is {worst:.2g}); history_['gap'] has them all. Raise tol or max_rounds (max_iters for methods other than "
                "ocsc)",
                learner.settings()["dtype"],
            )

    def _adopt(self, learner: _native.Learner, source: Reader | Stream, learned: dict[str, Any]) -> None:
        """Makes this run, and the layout of its samples, what the estimator has learned."""
        self._learner = learner
        self._layout = source.layout
        self._learned = learned
        shapes = source.shapes if isinstance(source, Reader) else None
        self.sfreq_ = rate_of(self.sfreq, source)
        if source.recorded is not None:
            self.info_ = source.recorded.info
        elif hasattr(self, "info_"):
            del self.info_
        if source.layout.letters == "W" and shapes is not None and len(shapes) == 1:
            self.n_features_in_ = int(shapes[0][0])
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_

    # What was learned

    def _fitted(self) -> _native.Learner:
        """Returns the run that the estimator has learned; refuses to where there is none."""
        learner: _native.Learner | None = getattr(self, "_learner", None)
        if learner is None:
            raise not_fitted(type(self).__name__)
        return learner

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_learner", None) is not None

    @property
    def filters_(self) -> Array:
        """The filters, of shape (K, axes...), or (K, C, axes...) for samples with channels; each of norm at most 1."""
        filters = self._fitted().filters()
        return filters if "C" in self._layout.letters or filters.shape[1] > 1 else filters[:, 0]

    @property
    def rank1_(self) -> Rank1:
        """Each filter of several channels as a topography times a waveform, as near as such a product comes: a `Rank1`."""
        return rank1_of(self._fitted().filters())

    @property
    def beta_(self) -> float:
        """The weight of the l1 norm: ``beta``, or what ``beta_ratio`` made of it."""
        beta: float = self._fitted().settings()["beta"]
        return beta

    @property
    def n_steps_(self) -> int:
        """How many steps were made, each with ``batch_size`` samples."""
        return self._fitted().n_steps

    @property
    def n_samples_seen_(self) -> int:
        """How many samples were learned from, over all passes."""
        return self._fitted().n_samples

    @property
    def history_(self) -> Array:
        """One record per step of this session: a structured array with the fields of `Step`."""
        columns = self._fitted().history()
        history: Array = np.empty(len(columns["step"]), RECORD)
        for name, column in columns.items():
            history[name] = column
        return history

    def history_frame(self) -> Any:
        """Returns `history_` as a data frame of pandas, one row per step."""
        return frame_of(self.history_, "history_frame")

    def _last_pass(self) -> Array:
        """Returns the records of the last pass."""
        history = self.history_
        return history[history["pass"] == history["pass"][-1]] if len(history) else history

    @property
    def objective_(self) -> float:
        """The mean objective over the last pass, each sample coded against the dictionary of its time; NaN after `load`."""
        last = self._last_pass()
        return float(last["objective"].mean()) if len(last) else float("nan")

    @property
    def gap_(self) -> float:
        """The worst relative duality gap over the last pass; NaN after `load`."""
        last = self._last_pass()
        return float(last["gap"].max()) if len(last) else float("nan")

    # Coding

    def _coding(self, data: np.dtype[Any] | None = None) -> tuple[dict[str, Any], Array]:
        """Returns the settings for new data of this type, and the filters (K, C, axes...)."""
        learner = self._fitted()
        # Not the others: the coder of new data, whatever the method, would refuse what only that method obeys.
        kept = {"n_filters", "filter_shape", "dtype", *CODING}
        learned = learner.settings()
        if learned["method"] == "scsc":
            # Its samples have filters of their own.
            kept |= {"method", "base_filters"}
        settings = {name: value for name, value in learned.items() if name in kept}
        settings.update(coding_changes(self._compared(self._layout.rank), self._learned))
        settings["preprocess"] = self._steps(settings["preprocess"])
        if not isinstance(settings["weights"], str) and np.ndim(settings["weights"]) > 1:
            # Those of coefficients go with the samples.
            settings["weights"] = None
        if not same(self.dtype, self._learned["dtype"]):
            settings["dtype"] = dtype_of(self.dtype, data)
        return settings, learner.filters()

    def _axes(self) -> str | None:
        """Returns the axes of new data: those that were set, or those that were learned from."""
        return self._layout.letters if self.axes is None and "C" in self._layout.letters else self.axes

    def _source(self, X: Any, mask: Any) -> Reader | Stream:
        source = source_of(X, self._axes(), self._layout.rank, mask, self.window, self.sfreq)
        split_weights(self.weights, source)
        return source

    def _letters(self, channels: int) -> str:
        """Returns the axes of a set of samples that is made of codes."""
        rank = self._layout.rank
        axes = self._axes()
        if axes is None:
            return ("NC" if channels > 1 else "N") + SPATIAL[rank]
        letters = _native.axes(axes)
        if Layout(letters.replace("N", "")).rank != rank:
            raise ValueError(f"axes: expected {rank} spatial axes, as the filters have, found {axes!r}")
        if "C" not in letters and channels > 1:
            raise ValueError(f"axes: expected a C for the {channels} channels that the filters have, found {axes!r}")
        return letters if "N" in letters else "N" + letters

    def transform(self, X: Any, mask: Any = None) -> Codes:
        """Codes samples to a relative duality gap of ``tol``, by the active-set coder whatever the method.

        With the method ``'scsc'`` every sample has filters of its own, which `Code.own_filters` returns.

        Parameters
        ----------
        X : array, list of arrays, or iterable
            As for `fit`; sizes may differ from those that were learned from.
        mask : array or list of arrays, optional
            As for `fit`.

        Returns
        -------
        Codes
            Warns with `ConvergenceWarning` of codes that did not reach ``tol``.
        """
        self._fitted()
        source = self._source(X, mask)
        settings, filters = self._coding(source.dtype)
        codes = code_all(settings, filters, source, threads_of(self.threads))
        codes.sfreq = rate_of(self.sfreq, source)
        codes.first_samp = 0 if source.recorded is None else source.recorded.first_samp
        return codes

    def fit_transform(self, X: Any, y: object = None, mask: Any = None) -> Codes:
        """Calls `fit`, then `transform` with the filters that were learned.

        Parameters
        ----------
        X, y, mask
            As for `fit`; X must be readable twice.

        Returns
        -------
        Codes
        """
        if is_stream(X) and hasattr(X, "__next__"):
            raise ValueError("X: expected data that can be read twice, for fit and for transform, found an iterator")
        return self.fit(X, y, mask).transform(X, mask)

    def inverse_transform(self, X: Codes | Code, original: Any = None) -> Any:
        """Reconstructs the samples that codes stand for.

        Parameters
        ----------
        X : Codes or Code
            From `transform`.
        original : array or list of arrays, optional
            The samples that were coded. Codes describe samples after preprocessing; what that took out (mean, smooth part,
            contrast) is taken from here, so that the result comes back as before preprocessing.

        Returns
        -------
        ndarray or list of ndarray
            An array with the axes of ``axes``, or those that were learned from, where sizes are equal, in f64; else a list.
            For a `Code`, and for the codes of an array that was one sample, that sample.
        """
        check_codes(X, "X")
        settings, filters = self._coding()
        parts = [X] if isinstance(X, Code) else list(X)
        samples = [reconstruct_one(part, filters, settings) for part in parts]
        if original is not None and parts:
            axes, rate = self._axes(), self.sfreq if self.sfreq is not None else getattr(X, "sfreq", None)
            originals = source_of(original, axes, self._layout.rank, None, self.window, rate, single=is_single(X))
            if isinstance(originals, Stream):
                raise TypeError(f"original: expected an array or a list of arrays, found {type(original).__name__}")
            if len(originals) != len(samples):
                raise ValueError(f"original: expected {counted(len(samples), 'sample')}, as there are codes, found {len(originals)}")
            samples = [_native.undo(settings["preprocess"], originals(i), x) for i, x in enumerate(samples)]
        else:
            samples = [with_channels(sample, settings, self._layout.rank) for sample in samples]
        letters = self._letters(max((len(sample) for sample in samples), default=filters.shape[1]))
        layout = Layout(letters.replace("N", ""))
        if isinstance(X, Codes) and X.windows is not None:
            recordings = X.windows[:, 0]
            samples = [
                np.concatenate([samples[i] for i in np.flatnonzero(recordings == n)], axis=-1) for n in np.unique(recordings)
            ]
        turned = [layout.turn_back(sample) for sample in samples]
        return turned[0] if is_single(X) else assemble(turned, letters)

    def evaluate(self, X: Any, mask: Any = None, tol: float | None = None) -> dict[str, float]:
        """Measures how well the filters represent samples, as the program's ``ocsc evaluate`` does.

        Parameters
        ----------
        X : array or list of arrays
            As for `fit`.
        mask : array or list of arrays, optional
            As for `fit`.
        tol : float, optional
            The relative duality gap to code to; 0.003 by default.

        Returns
        -------
        dict
            Means over samples of ``objective`` = ``data_term`` + beta ``l1``, ``psnr`` with its ``psnr_peak`` (the range of
            the samples after preprocessing) and ``nonzeros``, with ``nonzeros_share`` of the values; the number of ``empty``
            codes; the worst ``gap``; ``samples`` and ``seconds``.
        """
        self._fitted()
        source = self._source(X, mask)
        settings, filters = self._coding(source.dtype)
        if isinstance(source, Stream):
            raise ValueError("X: expected data that can be read twice, for their range and their codes, found an iterator")
        found = _native.evaluate(settings, filters, source, len(source), positive("tol", tol), threads_of(self.threads))
        nonzeros, share = found["nonzeros"] * found["samples"], found["nonzeros_share"]
        values = round(nonzeros / share) if share > 0 else 0
        warn_of_sparsity(int(found["samples"]), int(found["empty"]), round(nonzeros), values, settings["beta"])
        return found

    def score(self, X: Any, y: object = None, mask: Any = None) -> float:
        """Returns minus the mean objective 1/2 ||x - D z||^2 + beta ||z||_1 of samples, so that larger is better.

        Samples are coded to a relative gap of 0.3 %. Scores compare estimators of equal ``beta`` on equal data; with another
        beta the objective is another. With ``scoring='heldout'`` it is what `ocsc.heldout_score` returns, which compares any.

        Parameters
        ----------
        X, y, mask
            As for `fit`.

        Returns
        -------
        float
        """
        if self.scoring == "heldout":
            return heldout_score(self, X, mask=mask)
        if self.scoring != "objective":
            raise ValueError(f"scoring: expected 'objective' or 'heldout', found {self.scoring!r}")
        return -self.evaluate(X, mask)["objective"]

    # Files

    def save(self, path: str | os.PathLike[str], *, checkpoint: bool = False) -> None:
        """Writes a model file, which the program and `ocsc.load` read.

        Parameters
        ----------
        path : path
            The ``.safetensors`` file to write; replaced as a whole.
        checkpoint : bool, default=False
            Also write the statistics, so that `partial_fit` and ``ocsc learn --resume`` go on where learning ended.

        Parameters that were changed after learning and that `transform` heeds are in the model file too; a checkpoint has the
        settings of the run.
        """
        learner = self._fitted()
        if checkpoint:
            learner.save_checkpoint(path)
            return
        changes = coding_changes(self._compared(self._layout.rank), self._learned)
        learner.save(path, {**learner.settings(), **changes} if changes else None)

    @classmethod
    def from_learner(cls, learner: _native.Learner, params: Mapping[str, Any]) -> OnlineCSC:
        """Makes an estimator of a run that was read; users call `ocsc.load`."""
        settings = learner.settings()
        unknown = [name for name in params if name not in cls._names()]
        if unknown:
            raise TypeError(f"load: expected parameters of {cls.__name__}, found {', '.join(unknown)}")
        model = cls(**{**settings, **params})
        filters = learner.filters()
        rank = filters.ndim - 2
        letters = "DHW"[3 - rank :]
        if model.axes is not None:
            letters = _native.axes(model.axes).replace("N", "")
            if Layout(letters).rank != rank:
                raise ValueError(f"axes: expected {rank} spatial axes, as the model's filters have, found {model.axes!r}")
        model._learner = learner
        model._layout = Layout(letters)
        model._learned = cls(**settings)._compared(rank)
        return model

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        learner = state.pop("_learner", None)
        layout = state.pop("_layout", None)
        return {
            "ocsc_pickle": PICKLE,
            "version": _native.version(),
            "attributes": state,
            "learner": None if learner is None else learner.dumps(),
            "history": None if learner is None else learner.history(),
            "letters": None if layout is None else layout.letters,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        found = state.get("ocsc_pickle")
        if found != PICKLE:
            made = state.get("version", "an unknown version")
            raise ValueError(
                f"pickle: expected version {PICKLE} of ocsc {_native.version()}, found version {found} of ocsc {made}; save "
                "models with ocsc.save to read them with other versions"
            )
        # Pickles of earlier versions lack the settings that were added since.
        self.__dict__.update({parameter.name: parameter.default for parameter in PARAMETERS}, **state["attributes"])
        if state["learner"] is not None:
            self._learner = _native.loads(state["learner"], state["history"])
            self._layout = Layout(state["letters"])
            # Nor do they say all that was changed after learning.
            self._learned = {**self._compared(self._layout.rank), **getattr(self, "_learned", {})}

    # scikit-learn's conventions

    @classmethod
    def _names(cls) -> list[str]:
        """Returns the names of the constructor's parameters, also of a subclass with its own."""
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            For scikit-learn; there are no estimators inside.

        Returns
        -------
        dict
        """
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> OnlineCSC:
        """Sets parameters by name.

        All take effect at the next `fit`. An estimator that has learned takes some of them up before that, and refuses others.

        Parameters
        ----------
        **params
            As for the constructor.

        Returns
        -------
        OnlineCSC
            The estimator itself.
        """
        names = self._names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"{name}: expected a parameter of {type(self).__name__}: {', '.join(names)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={_shown(value)}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(two_d_array=True, three_d_array=True, allow_nan=False, sparse=False),
        )


def _shown(value: Any) -> str:
    """Returns the text of a setting; of an array with many values, its kind and shape."""
    if isinstance(value, np.ndarray) and value.size > MOST_SHOWN:
        return f"ndarray{value.shape}"
    return repr(value)


OnlineCSC.__doc__ = before("Attributes", documentation(), OnlineCSC.__doc__)
OnlineCSC.set_params.__doc__ = before("Parameters", explanation(), OnlineCSC.set_params.__doc__)
