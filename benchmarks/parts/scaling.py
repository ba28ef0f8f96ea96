"""Rows: from 100x100 to 500x500 pixels, and from one thread to two."""

import numpy as np

from common import DATA, WORK, Result, Row, Table, evaluate, learn, learned, pick
from data import crop, mosaic, normalised, saved

ROUNDS = pick(3, 1)
PHOTOS = pick(4, 1)


def tiles(image: np.ndarray, side: int) -> np.ndarray:
    """An image cut into squares."""
    n = len(image) // side
    return image.reshape(n, side, n, side).swapaxes(1, 2).reshape(-1, side, side)


def learning_seconds(data, *more, threads: int = 2) -> float:
    return learn(data, WORK / 'scaling.safetensors', *more, threads=threads)[-1]['seconds']


def main() -> None:
    photos = np.stack([normalised(crop(i) / 255.0) for i in range(PHOTOS)])
    large = saved('photos-500', photos)
    small = saved('photos-100', np.concatenate([tiles(photo, 100) for photo in photos]))
    fruit = saved(
        'batch', np.concatenate([np.load(DATA / name / 'train_lcne.npy') for name in ('fruit', 'city')])[: pick(16, 4)]
    )
    side = pick(1000, 500)
    big = saved('big', normalised(mosaic(side // 500, side // 500) / 255.0))

    code = {large: [], small: []}
    learned_in = {large: [], small: []}
    batch: dict[int, list[float]] = {1: [], 2: []}
    one: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for data in code:
            code[data].append(evaluate(learned(), data)['seconds'])
            learned_in[data].append(learning_seconds(data))
        for threads in batch:
            batch[threads].append(learning_seconds(fruit, '--batch', 8, '--passes', pick(4, 1), threads=threads))
            one[threads].append(evaluate(learned(), big, threads=threads)['seconds'])

    # 25 tiles hold as many pixels as one photo, so the ratio of the totals is a 25th of that of the times per image.
    growth, learning_growth = (25 * min(times[large]) / min(times[small]) for times in (code, learned_in))
    speedups = [min(times[1]) / min(times[2]) for times in (batch, one)]
    per_image = [1e3 * min(code[data]) / n for data, n in ((large, PHOTOS), (small, 25 * PHOTOS))]
    Result(
        rows=[
            Row(
                'pixels',
                'time per image, 500x500 against 100x100 (the same photos, cut into tiles)',
                f'{per_image[0]:.0f} ms',
                f'{per_image[1]:.1f} ms',
                f'{growth:.1f}',
                'at most 25.5',
                growth <= 25.5,
            ),
            Row(
                'threads-batch',
                'two threads against one: learning with batches of 8',
                f'{min(batch[2]):.2f} s',
                f'{min(batch[1]):.2f} s',
                f'{speedups[0]:.2f}',
                '1.9',
                speedups[0] >= 1.9,
            ),
            Row(
                'threads-image',
                f'two threads against one: coding one {side}x{side} image',
                f'{min(one[2]):.2f} s',
                f'{min(one[1]):.2f} s',
                f'{speedups[1]:.2f}',
                '1.95',
                speedups[1] >= 1.95,
            ),
        ],
        tables=[
            Table(
                'Growth with the number of pixels (25 times as many)',
                ['', '100x100', '500x500', 'ratio'],
                [
                    [
                        'coding to a gap of 1 %, per image',
                        f'{per_image[1]:.1f} ms',
                        f'{per_image[0]:.0f} ms',
                        f'{growth:.1f}',
                    ],
                    [
                        'learning, per image',
                        f'{1e3 * min(learned_in[small]) / (25 * PHOTOS):.1f} ms',
                        f'{1e3 * min(learned_in[large]) / PHOTOS:.0f} ms',
                        f'{learning_growth:.1f}',
                    ],
                ],
            )
        ],
    ).save('scaling')


if __name__ == '__main__':
    main()
