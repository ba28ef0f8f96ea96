"""Writes dictionaries.json: what SPORCO's batch dictionary learning reaches, for tests/all/methods.

    pip install sporco numpy
    python3 dictionaries.py

`ConvBPDNDictLearn` with `dmethod` 'ism' (CBPDN: iterated Sherman-Morrison) and 'cns' (CONSENSUS) from the same filters on the
same samples as the test: sums of a few shifted patterns, made of whole numbers so that both sides have the same ones. SPORCO
alternates one iteration for the codes with one for the dictionary, at fixed penalties; the test makes a few of each. So
what is compared is where they end: the objective of the filters, with all codes found anew to high accuracy.
"""

import json
from pathlib import Path

import numpy as np
from sporco.admm import cbpdn
from sporco.dictlrn import cbpdndl

SIZE, SIDE, FILTERS, SAMPLES, BETA, ITERATIONS = 16, 4, 4, 5, 0.1, 400


def wave(n, a, b, c):
    """The test's numbers: between -1 and 1, without a pattern that filters could learn by heart."""
    i = np.arange(n)
    return ((i * i * a + i * b + c) % 1009) / 504.5 - 1.0


def unit(filters):
    return filters / np.maximum(1.0, np.sqrt((filters ** 2).sum(axis=(1, 2), keepdims=True)))


def samples():
    truth = unit(3.0 * wave(FILTERS * SIDE * SIDE, 7, 3, 1).reshape(FILTERS, SIDE, SIDE))
    images = np.zeros((SAMPLES, SIZE, SIZE))
    for i in range(SAMPLES):
        for j in range(12):
            k, y, x = (i + j) % FILTERS, (7 * j + 3 * i) % SIZE, (5 * j * j + i) % SIZE
            value = 1.0 if (i + j) % 2 else -1.5
            for dy in range(SIDE):
                for dx in range(SIDE):
                    images[i, (y + dy) % SIZE, (x + dx) % SIZE] += value * truth[k, dy, dx]
    return images


def start():
    return unit(5.0 * wave(FILTERS * SIDE * SIDE, 11, 5, 77).reshape(FILTERS, SIDE, SIDE))


def objective(filters, images):
    """The mean minimum of 1/2 ||x - D z||^2 + beta ||z||_1 over the samples."""
    options = cbpdn.ConvBPDN.Options({'MaxMainIter': 5000, 'RelStopTol': 1e-7, 'AutoRho': {'Enabled': True}, 'rho': 2.0})
    solver = cbpdn.ConvBPDN(filters.transpose(1, 2, 0), images.transpose(1, 2, 0), BETA, options, dimK=1)
    solver.solve()
    z = solver.getcoef()
    rest = images.transpose(1, 2, 0) - solver.reconstruct(z).squeeze()
    return (0.5 * (rest ** 2).sum() + BETA * np.abs(z).sum()) / len(images)


def learn(method, images):
    d_0 = start().transpose(1, 2, 0)
    options = cbpdndl.ConvBPDNDictLearn.Options(
        {'MaxMainIter': ITERATIONS, 'AccurateDFid': True, 'CBPDN': {'rho': 2.0}, 'CCMOD': {'rho': 4.0, 'ZeroMean': False}},
        xmethod='admm', dmethod=method)
    learner = cbpdndl.ConvBPDNDictLearn(d_0, images.transpose(1, 2, 0), BETA, options, xmethod='admm', dmethod=method, dimK=1)
    return unit(learner.solve().squeeze().transpose(2, 0, 1))


def main():
    images = samples()
    result = {'beta': BETA, 'start': objective(start(), images)}
    for name, method in ('cbpdn', 'ism'), ('consensus', 'cns'):
        result[name] = objective(learn(method, images), images)
    Path(__file__).with_suffix('.json').write_text(json.dumps(result, indent=1) + '\n')
    print(result)


if __name__ == '__main__':
    main()
