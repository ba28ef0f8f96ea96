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
        'There are about five looks of 1 to 1.2 ms and about 100,000 visits of 40 ns, which no constant of the coder lowers; joining '
        'atoms and rebuilding the residual take about 3 ms. Next: descent in four distant tiles at once, and correlating only '
        'where the residual changed since the last look.'
    ),
    'memory-learn': (
        'The two sets meet other images first, and the first codes, made with random filters, are the densest: they decide '
        'the peak, by their active list.'
    ),
    'memory-code': (
        'By a heap profile of the local certificate: active list and merging 93 MB; canvas, second canvas, field, 8-bit levels and '
        'sample 48 MB each; squares and errors 36 MB; candidates 26 MB. Next: the field freed early, one canvas, levels strip by strip.'
    ),
    'memory-large': (
        'As above, four times. The sample and its residual alone take 384 MB in single precision, so 400 MB need coding in strips.'
    ),
    'pixels': 'Within the noise of the machine.',
    'threads-batch': 'The update is shared less well than coding.',
    'threads-image': 'The lists are merged and the candidates chosen by one thread.',
    'threads-signal': (
        'A signal has one line, and threads share lines. Tried: coding strips of 16,384 values apart and starting from their codes, '
        '2.76 s with two threads and 3.92 s with one; the sweeps of the whole that follow are made by one thread and take a second. '
        'Next: a signal folded into several lines of one canvas row.'
    ),
    'cifar': (
        'By a profile (one thread), descent takes a quarter of the time, correlations in 8 bits a fifth, statistics and update a '
        'quarter; nothing dominates. Loose codes save 12 % (LEARN_TOL.md). Next: one list for a whole batch.'
    ),
    'ecg': 'Eleven rounds, because one scale of the residual certified the whole signal. Commits after the one named below certify locally.',
    'channels': 'Not profiled yet. A visit of an atom of 204 rows of 150 values reads and writes 120 KB.',
    'dense': 'Descent makes no progress at this density, and the code goes to ADMM after five rounds. Next: blocks with cached Gram factors.',
}
