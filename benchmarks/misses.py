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
    'memory-code': 'The coder, with its codes and their certificate, is the peak.',
    'memory-large': 'Preprocessing holds the photo in double precision: 384 MB of 48 megapixels. Next: in bands of rows, from single precision.',
    'pixels': 'Within the noise of the machine.',
    'threads-batch': 'The update is shared less well than coding.',
    'threads-image': (
        'Lists are now joined and summed up band by band by both threads. What is left is choosing the strongest candidates, and the '
        'band where filters wrap around, which one thread sweeps alone.'
    ),
    'threads-signal': (
        'A signal is folded into lines, which threads share. Choosing the strongest candidates is left to one thread, and the first and '
        'the last line are swept alone.'
    ),
    'cifar': (
        'By a profile, nothing dominates: descent, correlations, statistics and update take about a quarter each. '
        'Loose codes save a little (LEARN_TOL.md). Next: one list for a whole batch.'
    ),
    'ecg': (
        'A third of the values of the ECG are non-zeros: descent is most of the time. '
        'Next: cached products of neighbouring atoms, so that a visit changes a few correlations instead of the residual.'
    ),
    'channels': (
        'A visit of an atom of 204 rows of 150 values reads and writes 120 KB. Next: products of neighbouring atoms kept from sample to '
        'sample, so that a visit changes correlations of the list instead of the residual.'
    ),
    'dense': (
        'The non-zeros are nearly as many as the values, and the code is handed over to ADMM. Next: blocks with cached Gram factors.'
    ),
}
