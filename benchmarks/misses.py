"""Why a figure is missed, by hand, by the id of its row: printed only where the row is really missed."""

MISSES: dict[str, str] = {
    'code': (
        'The target was set against a slower peer: with rho 7 and `HighMemSolve` SPORCO takes half of what its first settings took. '
        'Ours is the first image that a process codes, one at a time; four at once take the second line of the table below. '
        'Two threads share a single small image less well than a large one: the lines where filters wrap around are swept alone. '
        'Next: looking again only where the residual changed, which serves the last looks: before them it changes almost everywhere.'
    ),
    'learn': (
        "The search found settings with which SPORCO's learner goes 31 lower than those that the first target was set against, "
        'and with `HighMemSolve` in less than half of the time. The update takes as '
        'long from any codes, and a first pass has no codes to begin with, so that coding a revisited image from its last code would help '
        'the later passes only. Next: that, and leaving filters alone whose statistics hardly changed.'
    ),
    'units': (
        'Looks in 8 bits and descent take most of the time, about equally, and rows that cross cache lines slow '
        'every visit. Neither looks nor visits fell by tuning constants; of extrapolated sweeps (Anderson) hardly any lowered the objective, '
        'since supports still change; to leave alone what hardly moved saved visits and cost rounds. '
        'Next: correlating only where the residual changed since the last look, which serves the last two looks.'
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
    'avx2': (
        'Both paths got faster, the wide one more. A look in 8 bits takes several times as long on AVX2 as with VNNI: its sums of 16 bits '
        'take two instructions for 32 products, instead of one for 64. Processors with AVX-VNNI but without AVX-512 have a path of their own, '
        'which this row does not measure. Next: fewer looks.'
    ),
    'cifar': (
        'By a profile, looks take most, then descent, the update and statistics; no part dominates. '
        'Loose codes save a little (LEARN_TOL.md). Next: one list for a whole batch.'
    ),
    'ecg': (
        'A third of the values of the ECG are non-zeros: descent is most of the time. Extrapolated sweeps (Anderson) '
        'hardly ever lowered the objective. Next: solving for the values of a settled support, whose Gram matrix is banded.'
    ),
    'channels': (
        'A visit of an atom of 204 rows of 150 values reads 240 KB, half of it filters, and all filters together do not fit into the cache. '
        'Next: products of neighbouring atoms kept from sample to sample, so that a visit changes correlations of the list instead of the residual.'
    ),
    'dense': (
        'The non-zeros are nearly as many as the values, and the code is handed over to ADMM, early now. Next: fewer iterations of ADMM.'
    ),
}
