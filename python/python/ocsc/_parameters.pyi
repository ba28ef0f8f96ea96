"""The constructor of `OnlineCSC`, for type checkers. Written by ``cargo xtask generate``: edit the declarations instead."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from ._step import Step

class Parameters:
    n_filters: int
    filter_shape: int | Sequence[int]
    beta: float
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
    weights: npt.ArrayLike | None
    max_rounds: int
    forgetting: float
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
    verbose: int | bool
    callback: Callable[[Step], object] | None

    def __init__(
        self,
        n_filters: int = 100,
        filter_shape: int | Sequence[int] = (11, 11),
        beta: float = 1.0,
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
        weights: npt.ArrayLike | None = None,
        max_rounds: int = 200,
        forgetting: float = 3.0,
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
        verbose: int | bool = 0,
        callback: Callable[[Step], object] | None = None,
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
        beta : float, default=1.0
            Weight of the l1 norm.
        beta_ratio : float, optional
            Instead of beta: this fraction of the smallest beta with all-zero codes, for the first batch visited.
        method : {'ocsc', 'ocsc-paper', 'deconvnet', 'fcsc', 'ffcsc', 'cbpdn', 'consensus', 'ocdl1', 'ocdl2', 'osc'}, default='ocsc'
            The method. `ocsc.methods` lists them with a line each.
        passes : int, default=1
            Passes over the data; 0 leaves the initial dictionary as it is.
        batch_size : int, default=1
            Samples coded between two updates of the dictionary.
        tol : float, default=0.01
            Codes are this close to optimal: relative duality gap, or as `stop` says.
        boundary : {'circular', 'zero', 'free'}, default='circular'
            What lies outside a sample: itself again (circular), zeros (zero), or nothing that counts (free); all
            methods but ocsc take circular.
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
            What the axes of arrays mean: N samples, C channels, D depth or time, H height, W width. By default
            samples come first and have the axes of ``filter_shape``: (N, W), (N, H, W) or (N, D, H, W). For lists
            and iterators the letters are those of one sample; an N is ignored there. Without an N, an array with
            just these axes is one sample.
        preprocess : str, default='none'
            none, or steps such as lowpass=5,scale, each at most once: gray (first), mean, scale (by the standard
            deviation) or scale=NUMBER, lowpass=LAMBDA (minus the smooth part), whiten=ORDER (signals), lcn (local
            contrast), taper (last).
        non_negative : bool, default=False
            Codes without negative values (method ocsc).
        weights : array of shape (K,), optional
            One weight per filter on its l1 norm; 1 each by default (method ocsc).
        max_rounds : int, default=200
            Rounds of the active-set coder per sample, at most; the gap says how far its code got.
        forgetting : float, default=3.0
            The past weighs (1 - 1/t)^this at update t (methods ocsc and osc); 1 is plain averaging.
        sweeps : int, default=1
            Sweeps of block descent per update, at most (methods ocsc and osc).
        sweep_tol : float, default=0.0001
            End the sweeps of an update when the relative norm of the projected gradient is at most this (method
            ocsc).
        reseed : bool, default=True
            Try the worst-explained patches in the place of filters that no code uses (method ocsc).
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
        verbose : int, default=0
            1 shows a progress bar, on stderr of terminals and as one output of a notebook's cell; elsewhere it
            writes a line to stderr every five seconds, and at the end.
        callback : callable, optional
            Called as ``callback(step)`` after every step, in the thread that called, with a `Step`: a dict of what
            happened. If it returns True the run ends there; None and False go on. An exception ends the run and is
            raised. What was learned up to the step is in the estimator: a callback may look at ``filters_``, or
            call ``score`` on other samples.
        """
