"""Why a figure is missed, by hand, by the id of its row: printed only where the row is really missed."""

MISSES: dict[str, str] = {
    'code': (
        'The target was set against a slower peer: with rho 7 and `HighMemSolve` SPORCO takes half of what its first settings took. '
        'Ours is the first image that a process codes, one at a time; four at once take the second line of the table below. '
        'Two threads shorten a single small image by a third only: a 100x100 image has five bands. '
        'Next: smaller tiles for small images, and looking again only where the residual changed.'
    ),
    'learn': (
        "The search found settings with which SPORCO's learner goes 31 lower than those that the first target was set against, "
        'and with `HighMemSolve` in less than half of the time. Next: coding a revisited image from its last code.'
    ),
    'units': (
        'Neither looks nor visits fell by tuning the constants of the coder. '
        'Next: descent in four distant tiles at once, and correlating only where the residual changed since the last look.'
    ),
    'memory-learn': (
        'The two sets meet other images first, and the first codes, made with random filters, are the densest: they decide '
        'the peak, by their active list.'
    ),
    'memory-code': (
        'The local certificate holds the sample, two canvases, a field, the 8-bit levels and the active list at once. '
        'Next: the field freed early, one canvas, levels strip by strip.'
    ),
    'memory-large': (
        'As above, four times. The sample and its residual alone take 384 MB in single precision, so 400 MB need coding in strips.'
    ),
    'pixels': 'Within the noise of the machine.',
    'threads-batch': 'The update is shared less well than coding.',
    'threads-image': 'The lists are merged and the candidates chosen by one thread.',
    'threads-signal': (
        'A signal has one line, and threads share lines. Strips that are coded apart helped little: the sweeps of the whole that '
        'follow are made by one thread. Next: a signal folded into several lines of one canvas row.'
    ),
    'cifar': (
        'By a profile, nothing dominates: descent, correlations, statistics and update take about a quarter each. '
        'Loose codes save a little (LEARN_TOL.md). Next: one list for a whole batch.'
    ),
    'ecg': (
        'At that commit one scale of the residual certified the whole signal; later ones certify locally.'
    ),
    'channels': 'Not profiled yet. A visit of an atom of 204 rows of 150 values reads and writes 120 KB.',
    'dense': (
        'The non-zeros are nearly as many as the values, and the code is handed over to ADMM. Next: blocks with cached Gram factors.'
    ),
}
