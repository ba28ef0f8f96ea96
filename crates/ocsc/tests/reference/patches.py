"""Writes patches.json: what scikit-learn's MiniBatchDictionaryLearning makes of the test's patches, for tests/all/methods.

    pip install scikit-learn numpy
    python3 patches.py

One step on all patches at once is Algorithm 1 with one batch: lasso codes, A, B and one sweep over the atoms. So the atoms
after it must be those of `osc`, to the accuracy of the codes. Later steps weigh the past in different ways: scikit-learn as
theta = (t b, or b^2 - b + t from step b on), weight (theta + 1 - b) / (theta + 1), which `osc` does not have. So Algorithm 1 is
also run here with the weights of `osc`, in numpy with scikit-learn's codes, and with scikit-learn's weights, which must give
what scikit-learn gives: this tells that the weights are all that differs.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.decomposition import MiniBatchDictionaryLearning, sparse_encode

SIDE, ATOMS, PATCHES, BETA, BATCH, PASSES = 4, 6, 120, 0.15, 12, 10


def wave(n, a, b, c):
    """The test's numbers: between -1 and 1, without a pattern that atoms could learn by heart."""
    i = np.arange(n)
    return ((i * i * a + i * b + c) % 1009) / 504.5 - 1.0


def unit(atoms):
    return atoms / np.maximum(1.0, np.linalg.norm(atoms, axis=1, keepdims=True))


def patches():
    truth = unit(3.0 * wave(ATOMS * SIDE * SIDE, 7, 3, 1).reshape(ATOMS, -1))
    x = np.zeros((PATCHES, SIDE * SIDE))
    for i in range(PATCHES):
        x[i] = (1.0 + i % 3) * truth[i % ATOMS] - (1.0 + i % 2) * truth[(i * i + 1) % ATOMS]
    return x


def start():
    return unit(5.0 * wave(ATOMS * SIDE * SIDE, 11, 5, 77).reshape(ATOMS, -1))


def objective(atoms, x):
    z = sparse_encode(x, atoms, algorithm='lasso_cd', alpha=BETA, max_iter=100000)
    return float((0.5 * ((x - z @ atoms) ** 2).sum() + BETA * np.abs(z).sum()) / len(x))


def learner(batch):
    return MiniBatchDictionaryLearning(
        n_components=ATOMS, alpha=BETA, batch_size=batch, fit_algorithm='cd', dict_init=start(), shuffle=False,
        transform_max_iter=100000, random_state=0)


def algorithm_1(x, weight):
    atoms, a, b, t = start(), np.zeros((ATOMS, ATOMS)), np.zeros((ATOMS, SIDE * SIDE)), 0
    for _ in range(PASSES):
        for first in range(0, PATCHES, BATCH):
            t, batch = t + 1, x[first:first + BATCH]
            z = sparse_encode(batch, atoms, algorithm='lasso_cd', alpha=BETA, max_iter=100000)
            a, b = weight(t) * a + z.T @ z, weight(t) * b + z.T @ batch
            for l in range(ATOMS):
                if a[l, l] > 0:
                    atom = atoms[l] + (b[l] - a[l] @ atoms) / a[l, l]
                    atoms[l] = atom / max(1.0, np.linalg.norm(atom))
    return objective(atoms, x)


def scikit_weight(t):
    theta = t * BATCH if t < BATCH else BATCH**2 - BATCH + t
    return (theta + 1 - BATCH) / (theta + 1)


def main():
    x = patches()
    one = learner(PATCHES).partial_fit(x).components_
    many = learner(BATCH)
    for _ in range(PASSES):
        for first in range(0, PATCHES, BATCH):
            many.partial_fit(x[first:first + BATCH])
    many_objective = objective(many.components_, x)
    assert abs(algorithm_1(x, scikit_weight) - many_objective) < 1e-6 * many_objective
    result = {
        'beta': BETA,
        'start': objective(start(), x),
        'one_step': one.ravel().tolist(),
        'one_step_objective': objective(one, x),
        'many_steps_objective': many_objective,
        'many_steps_by_exponent': {e: algorithm_1(x, lambda t: (1 - 1 / t) ** (e - 1)) for e in [1, 2, 3]},
    }
    Path(__file__).with_suffix('.json').write_text(json.dumps(result, indent=1) + '\n')
    print({k: v for k, v in result.items() if k != 'one_step'})


if __name__ == '__main__':
    main()
