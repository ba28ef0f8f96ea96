"""The constructor of `OnlineCSC`, for type checkers. Written by ``cargo xtask generate``: edit the declarations instead."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from ._step import Step

class Parameters:
    n_filters: int
    filter_shape: int | Sequence[int]
    beta: float | None
    beta_ratio: float | None
    method: str
    passes: int
    batch_size: int
    tol: float
    boundary: str
    init: str | npt.ArrayLike
    random_state: Any
    threads: int | None
    dtype: Any
    axes: str | None
    preprocess: str
    non_negative: bool
    weights: npt.ArrayLike | str | None
    max_rounds: int
    forgetting: float | str
    sweeps: int
    sweep_tol: float
    reseed: bool
    stop: str
    max_iters: int
    rho: float | None
    adaptive_rho: bool
    relaxation: float
    update_rho: float | None
    update_iters: int
    update_tol: float
    update_reset: bool
    pass_code_iters: int
    pass_update_iters: int
    stop_tol: float | None
    time_limit: float | None
    memory_limit: int | str | None
    verbose: int | bool | str
    callback: Callable[[Step], object] | None
    penalty: str
    loss: str
    joint: bool
    coder: str
    refit: bool
    error: float | None
    explained: float | None
    nonzeros: int | None
    learn_tol: float | None
    base_filters: int
    recenter: bool
    filters_nonnegative: bool
    zero_mean: bool
    scales: Sequence[int | Sequence[int]]
    rank1: bool
    fixed_filters: int
    step_size: float | None
    step_delay: float
    preset: str | None
    per_channel: bool
    scoring: str
    window: int | str | None
    sfreq: float | None

    def __init__(
        self,
        n_filters: int = 100,
        filter_shape: int | Sequence[int] = (11, 11),
        beta: float | None = None,
        beta_ratio: float | None = None,
        method: str = 'ocsc',
        passes: int = 1,
        batch_size: int = 1,
        tol: float = 0.01,
        boundary: str = 'circular',
        init: str | npt.ArrayLike = 'random',
        random_state: Any = 0,
        threads: int | None = None,
        dtype: Any = 'f32',
        axes: str | None = None,
        preprocess: str = 'none',
        non_negative: bool = False,
        weights: npt.ArrayLike | str | None = None,
        max_rounds: int = 200,
        forgetting: float | str = 'auto',
        sweeps: int = 1,
        sweep_tol: float = 0.0001,
        reseed: bool = True,
        stop: str = 'gap',
        max_iters: int = 1000,
        rho: float | None = None,
        adaptive_rho: bool = True,
        relaxation: float = 1.8,
        update_rho: float | None = None,
        update_iters: int = 50,
        update_tol: float = 0.001,
        update_reset: bool = False,
        pass_code_iters: int = 10,
        pass_update_iters: int = 5,
        stop_tol: float | None = None,
        time_limit: float | None = None,
        memory_limit: int | str | None = None,
        verbose: int | bool | str = 0,
        callback: Callable[[Step], object] | None = None,
        *,
        penalty: str = 'l1',
        loss: str = 'l2',
        joint: bool = False,
        coder: str = 'active-set',
        refit: bool = False,
        error: float | None = None,
        explained: float | None = None,
        nonzeros: int | None = None,
        learn_tol: float | None = None,
        base_filters: int = 0,
        recenter: bool = False,
        filters_nonnegative: bool = False,
        zero_mean: bool = False,
        scales: Sequence[int | Sequence[int]] = (),
        rank1: bool = False,
        fixed_filters: int = 0,
        step_size: float | None = None,
        step_delay: float = 5.0,
        preset: str | None = None,
        per_channel: bool = False,
        scoring: str = 'objective',
        window: int | str | None = None,
        sfreq: float | None = None,
    ) -> None:
        """Keeps the parameters as they are given; `fit` checks them.

        Parameters
        ----------
        n_filters : int, default=100
            Number of filters.
        filter_shape : int or sequence of int, default=(11, 11)
            Filter size: one length for every axis, or one for each. Several lengths also say what samples are:
            (11,) signals, (11, 11) images, (5, 5, 5) volumes. One number says so only of samples with one axis, X
            of shape (n, W), which are signals; samples with more axes may be images, or signals with channels, and
            ``axes`` must say which.
        beta : float, optional
            Weight of the l1 norm. By default it is chosen to suit the data, as ``beta_ratio`` says; beside a
            ``beta_ratio`` it is refused.
        beta_ratio : float, optional
            Instead of beta: this fraction of the smallest beta with all-zero codes, in the median over up to 64
            samples. Where neither is given, 0.1. It depends neither on ``random_state`` nor on ``init``.
        method : str, default='ocsc'
            The method. One of 'ocsc', 'ocsc-paper', 'deconvnet', 'fcsc', 'ffcsc', 'cbpdn', 'consensus', 'ocdl1',
            'ocdl2', 'sgd', 'aocdl', 'scsc', 'osc'; `ocsc.methods` lists them with a line each.
        passes : int, default=1
            Passes over the data; 0 leaves the initial dictionary as it is.
        batch_size : int, default=1
            Samples coded between two updates of the dictionary.
        tol : float, default=0.01
            Codes are this close to optimal: relative duality gap, or as `stop` says.
        boundary : {'circular', 'zero', 'free'}, default='circular'
            What lies outside a sample: itself again (circular), zeros (zero), or nothing that counts (free); all
            methods but ocsc, sgd, aocdl and scsc take circular.
        init : {'random', 'patches'} or array, default='random'
            Initial dictionary: random, patches (of the data), or an array of shape (K, C, axes...) or (K, axes...).
            An array also says how many filters there are and of what size; ``n_filters`` and ``filter_shape`` must
            say the same, or have their defaults.
        random_state : int, numpy generator or None, default=0
            Seeds the initial dictionary and the visiting order. None draws a seed, so that every run differs.
        threads : int, optional
            Threads to compute with; all cores by default.
        dtype : {'f32', 'f64', 'auto'} or numpy dtype, default='f32'
            Precision that everything is computed in: f32 or f64. With auto, f64 for data in f64 and f32 for others.
            Arrays of either precision are taken without conversion of the whole.
        axes : str, optional
            What the axes of arrays mean: N samples, C channels, D depth, H height, W width; T, time, is the W of
            signals, and the D of video where there is a W too. By default samples come first and have the axes of
            ``filter_shape``: (N, W), (N, H, W) or (N, D, H, W). For lists and iterators the letters are those of
            one sample; an N is ignored there. Without an N, an array with just these axes is one sample.
        preprocess : str, default='none'
            none, or steps such as lowpass=5,scale, each at most once: gray (first), mean, scale (by the standard
            deviation) or scale=NUMBER, lowpass=LAMBDA (minus the smooth part), whiten=ORDER (signals), lcn (local
            contrast), taper (last), per-channel (behind it: gray filters on every channel by itself).
        non_negative : bool, default=False
            Codes without negative values (method ocsc).
        weights : array of shape (K,) or that of a code, or str, optional
            Weights in the penalty, by which beta is multiplied: one per filter, or the rule inverse:EPS, 1 / (|D^T
            x| + EPS) for each coefficient (method ocsc).
        max_rounds : int, default=200
            Rounds of the active-set coder per sample, at most; the gap says how far its code got.
        forgetting : float or str, default='auto'
            The past weighs (1 - 1/t)^this at update t (methods ocsc, scsc, aocdl and osc); 1 is plain averaging;
            auto is 3 + log2 of the samples per update. Or constant:WEIGHT, such as constant:0.99 for streams that
            drift: the past weighs this at every update.
        sweeps : int, default=1
            Sweeps of block descent per update, at most (methods ocsc, scsc, aocdl and osc).
        sweep_tol : float, default=0.0001
            End the sweeps of an update when the relative norm of the projected gradient is at most this (methods
            ocsc, scsc and aocdl).
        reseed : bool, default=True
            Try the worst-explained patches in the place of filters that no code uses (methods ocsc and scsc).
        stop : {'gap', 'residuals', 'change'}, default='gap'
            The coder's stopping rule: duality gap (gap), relative ADMM residuals (residuals), or the paper's
            relative change of Z (change); methods other than ocsc, here and below.
        max_iters : int, default=1000
            The coder's iterations, at most.
        rho : float, optional
            The coder's penalty; 50 beta / max|x| by default.
        adaptive_rho : bool, default=True
            Balance the coder's residuals by its penalty, instead of keeping it fixed.
        relaxation : float, default=1.8
            The coder's over-relaxation, from 1 (the paper's) up to 2.
        update_rho : float, optional
            The update's penalty; 4 ||Z||^2 / K of the first code by default.
        update_iters : int, default=50
            The update's iterations, at most.
        update_tol : float, default=0.001
            The update's tolerance on its relative residuals.
        update_reset : bool, default=False
            Start the update's variables from zero at every sample, as the paper prints it.
        pass_code_iters : int, default=10
            Batch methods: the coder's iterations per sample and pass, at most.
        pass_update_iters : int, default=5
            Batch methods: the update's iterations per pass, at most.
        stop_tol : float, optional
            Stop when the relative changes of codes and dictionary over a pass are both below this (the paper:
            1e-3).
        time_limit : float, optional
            Stop after so many seconds of learning.
        memory_limit : int or str, optional
            Refuse to start if more memory than this would be needed, e.g. 500MB or 32GB; what is free by default.
        verbose : int or 'live', default=0
            1 shows a progress bar, on stderr of terminals and as one output of a notebook's cell; elsewhere it
            writes a line to stderr every five seconds, and at the end. 'live' also opens a page in the browser that
            shows filters, curves and the newest sample while they change.
        callback : callable, optional
            Called as ``callback(step)`` after every step, in the thread that called, with a `Step`: a dict of what
            happened. If it returns True the run ends there; None and False go on. An exception ends the run and is
            raised. What was learned up to the step is in the estimator: a callback may look at ``filters_``, or
            call ``score`` on other samples.
        penalty : str, default='l1'
            What codes pay: l1, elastic:MU, log-sum:EPS, mcp:GAMMA or lq:Q (method ocsc).
        loss : str, default='l2'
            What differences cost: l2 (half the squares), huber:DELTA or l1, which bound what single values can do
            (method ocsc).
        joint : bool, default=False
            Channels that are coded by themselves (per-channel) share their support: what a filter has on the
            channels of a place pays its Euclidean norm (method ocsc).
        coder : {'active-set', 'omp'}, default='active-set'
            The coder: active-set, or omp (orthogonal matching pursuit: the strongest atom joins, and all values are
            fitted anew, until the budget of error, explained or nonzeros is spent, or no correlation exceeds beta)
            (method ocsc).
        refit : bool, default=False
            Fit the values of a code to the sample by least squares, signs kept: amplitudes without the bias of the
            penalty. Codes of new data only; learning goes by the penalty.
        error : float, optional
            Instead of beta: codes whose differences to the sample have this root mean square (method ocsc).
        explained : float, optional
            Instead of beta: codes that explain this share of the sample's energy (method ocsc).
        nonzeros : int, optional
            Instead of beta: codes of at most this many non-zeros per sample (method ocsc).
        learn_tol : float, optional
            While learning, codes are this close to optimal; as tol says by default. 0.1 learns nearly as well in
            less time (methods ocsc, sgd, aocdl, scsc).
        base_filters : int, default=0
            Filters are linear combinations of this many base filters: one set of weights for all samples (method
            ocsc, where 0 leaves the filters free), or one for every sample (method scsc, where 0 is a tenth of the
            filters, at least 4).
        recenter : bool, default=False
            Every ten updates, move filters so that their energy is in the middle, and try the worst-explained
            patches in the place of filters that are shifted copies of others (method ocsc).
        filters_nonnegative : bool, default=False
            Filters without negative values (method ocsc).
        zero_mean : bool, default=False
            Filters whose mean is zero, over their support and all channels (method ocsc).
        scales : sequence of int, or of sequences of int, default=()
            Sizes of the filters' supports, each one length for every axis or one for each: the learned filters
            share them evenly, in order, and are zero outside a centred box of their size; all have the whole array
            by default (method ocsc).
        rank1 : bool, default=False
            Filters that are a topography (channels) times a waveform (space or time), for samples with several
            channels (method ocsc).
        fixed_filters : int, default=0
            The first filters of the given initial dictionary that do not learn (method ocsc).
        step_size : float, optional
            The step of update t is this / (step_delay + t) (method sgd); by default it follows from the curvature
            of the first batch.
        step_delay : float, default=5.0
            The step of update t is step_size / (this + t) (method sgd).
        preset : {'paper'}, optional
            paper: the settings of the paper's experiment, where nothing else is said: beta 1, beside the defaults
            of 100 filters of 11x11, circular, one pass. Arrays are taken as they are: photos need
            preprocess='gray,lcn,taper' too.
        per_channel : bool, default=False
            Gray filters on every channel by itself: the step per-channel after those of ``preprocess``. Codes then
            have the channel as their first axis; with ``joint`` the channels share their support.
        scoring : {'objective', 'heldout'}, default='objective'
            What `score` returns: minus the mean objective, which compares estimators of equal beta; or
            `ocsc.heldout_score`, which compares any.
        window : int or str, optional
            Cut signals into windows: a number of values (2048) or seconds ('5s', which needs ``sfreq``); a rest
            shorter than half a window goes with the last. Codes are those of the windows; `Codes.events` and
            `inverse_transform` put them together again.
        sfreq : float, optional
            Values per second of signals, or frames per second of video, for ``window`` in seconds and for the times
            of `Codes.events`.
        """
