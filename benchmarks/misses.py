"""Why a figure is missed, by hand, by the id of its row: printed only where the row is really missed."""

MISSES: dict[str, str] = {
    'code': (
        'The target was set against 2.4 s; with rho 7 and `HighMemSolve` SPORCO takes 0.83 to 0.94 s here, '
        'which alone is a factor of 2.6 or more. Ours is the first image that a process codes, one at a time; four at once take the second line of '
        'the table below. Two threads shorten a single small image by a third only: a 100x100 image has five bands. '
        'Next: smaller tiles for small images, and looking again only where the residual changed.'
    ),
    'learn': (
        "The target was set against 1058 after 24 s. The search found settings with which SPORCO's learner goes 31 "
        'lower, and with `HighMemSolve` in less than half of the time. Where both have made one pass, `ocsc` is 15 times '
        'faster and 13 lower. Next: coding a revisited image from its last code.'
    ),
    'units': (
        'By a profile, descent takes a third of the time, the correlations in 8 bits a quarter, the exact one an eighth; '
        'rebuilding the residual, sorting and choosing the rest. Next: correlating only where the residual changed since '
        'the last look.'
    ),
    'memory-learn': (
        'The two sets meet other images first, and the first codes, made with random filters, are the densest: they decide '
        'the peak. Within the run of 200 the log shows 37.1 MB after the third image and 37.9 MB from the 93rd to the last.'
    ),
    'pixels': (
        'The gap is decided by the largest violation anywhere, and 25 times the positions have a larger one: large images '
        'need two rounds more. Learning, which adds the update once per image, grows by less. Next: a dual point that is '
        'scaled locally, and looking again only where the residual changed.'
    ),
    'threads-batch': (
        'Within the noise of the machine: 1.91 in the run before. The update is shared less well than coding.'
    ),
    'threads-image': 'The lists are merged and the candidates chosen by one thread.',
    'cifar': (
        'The target stands against about 7 images per second, which are the defaults. At its best settings SPORCO makes '
        '38, and its test objective after one pass is 0.2 % lower than ours. By a profile (one thread), descent takes a '
        'quarter of the time, correlations in 8 bits a sixth, statistics and update a fifth; nothing dominates. Next: one '
        'list for a whole batch, and starting a revisited image from its last code.'
    ),
}
