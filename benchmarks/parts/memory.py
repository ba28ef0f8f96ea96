"""Rows: peak memory of learning from 500x500 images and of coding one 4000x3000 photo."""

import numpy as np
from PIL import Image

from common import WORK, Result, Row, Table, filters, initial, learned, peak_memory, pick, wrap
from data import folder_of_crops, mosaic, normalised, saved

FEW, MANY = pick((10, 200), (2, 4))
TILES = pick((6, 8), (1, 2))
MB = 1e6
# 0.2 of the largest correlation of the photo with these filters, as it was when the row was first measured.
BETA = 2.15


def main() -> None:
    out = WORK / 'memory.safetensors'
    used = [
        peak_memory('learn', folder_of_crops(n), '--init', initial(), '--preset', 'paper', '--out', out, '--threads', 2) / MB
        for n in (FEW, MANY)
    ]
    growth = used[1] / used[0] - 1

    photo = WORK / 'photo.png'
    Image.fromarray(mosaic(*TILES)).save(photo)
    model = wrap(filters(learned()), photo, WORK / 'photo.safetensors', '--preset', 'paper', '--beta', BETA)
    array = saved('photo', normalised(mosaic(*TILES) / 255.0))
    coding, from_array = (
        peak_memory('code', model, *data, '--out', WORK / 'photo-code', '--threads', 2) / MB
        for data in ([photo], [array, '--preprocess', 'none'])
    )
    quarters = np.asarray(Image.open(photo))
    Image.fromarray(np.tile(quarters, (2, 2))).save(WORK / 'photo-large.png')
    large = peak_memory('code', model, WORK / 'photo-large.png', '--out', WORK / 'photo-code', '--threads', 2) / MB
    height, width = (500 * n for n in TILES)
    Result(
        rows=[
            Row(
                'memory-learn',
                f'peak memory, learning from {FEW} and from {MANY} images of 500x500',
                f'{used[0]:.1f} MB, {used[1]:.1f} MB',
                '',
                f'{100 * growth:+.1f} %',
                'equal within 2 %',
                bool(abs(growth) <= 0.02),
            ),
            Row(
                'memory-code',
                f'peak memory, coding one {width}x{height} gray photo at beta ratio 0.2',
                f'{coding:.0f} MB',
                '',
                '',
                'at most 200 MB',
                bool(coding <= 200),
            ),
            Row(
                'memory-large',
                f'peak memory, coding one {2 * width}x{2 * height} gray photo at the same beta',
                f'{large:.0f} MB',
                '',
                '',
                'at most 400 MB',
                bool(large <= 400),
            ),
        ],
        tables=[
            Table(
                f'Peak memory of coding {width}x{height} pixels',
                ['', 'MB'],
                [
                    ['PNG file, preprocessed by the program (the row above)', f'{coding:.0f}'],
                    ['the same pixels as a float32 array, already contrast-normalised', f'{from_array:.0f}'],
                ],
            )
        ],
        notes=[
            'Memory: PNG files through the whole program (decoding, gray, contrast normalisation, taper included). '
            'The 500x500 images are crops of the flower photos (both ends, mirrored, transposed), learned in one pass '
            f'with batches of one; the {width}x{height} photo is a mosaic of '
            f'{TILES[0] * TILES[1]} of them; beta ratio 0.2 is beta = {BETA:.3f}, coded to a gap of 1 %.'
        ],
    ).save('memory')


if __name__ == '__main__':
    main()
