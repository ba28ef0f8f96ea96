//! The pairs of a code's atoms that are closer than a filter, and where their products belong in the statistics.

use super::{LANES, Window};
use crate::{Atom, Code, Real};
use std::ops::AddAssign;

/// Columns of a line that share an entry of the table of where atoms are.
const CELL: usize = 8;

/// The pairs of one code.
pub(crate) struct Pairs<'a, T> {
    code: &'a Code<T>,
    positions: [usize; 3],
    circular: bool,
    /// All atoms in raster order. On a circle those near the ends of a line stand again beyond its other end.
    near: Vec<Near>,
    /// Which of them is the first at or after each cell of a line, (lines, cells and the end).
    heads: Vec<u32>,
    cells: usize,
}

/// An atom as its neighbours see it.
struct Near {
    /// The column, counted from a filter's reach before the line.
    x: u32,
    filter: u32,
    /// Where the filter's window starts in a row of blocks that begins with the first one.
    start: usize,
    value: f64,
}

/// Products of neighbours, and where they belong in a row of blocks. They are collected apart from being added: most additions wait for
/// memory, and so many wait at once.
pub(super) struct Products<N> {
    /// The first `len` of these count.
    list: Vec<(usize, N)>,
    len: usize,
}

impl<N: AddAssign + Copy + Default> Products<N> {
    pub(super) fn new() -> Self {
        Products { list: Vec::new(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds all of them where they belong, and forgets them.
    pub(super) fn add_to(&mut self, row: &mut [N]) {
        self.list[..self.len].iter().for_each(|(at, product)| row[*at] += *product);
        self.len = 0;
    }

    /// Returns where the next ones go, if there are no more than `most`.
    fn room(&mut self, most: usize) -> &mut [(usize, N)] {
        if self.list.len() < self.len + most {
            self.list.resize(self.len + most, (0, N::default()));
        }
        &mut self.list[self.len..]
    }
}

impl<'a, T: Real> Pairs<'a, T> {
    pub(super) fn new(code: &'a Code<T>, circular: bool, window: &Window) -> Self {
        let (positions, reach) = (code.shape(), window.reach()[2].unsigned_abs());
        let mut atoms: Vec<&Atom<T>> = code.atoms().iter().collect();
        atoms.sort_unstable_by_key(|a| (a.position, a.filter));
        let (n_lines, width) = (positions[0] * positions[1], positions[2]);
        let cells = (width + 2 * reach).div_ceil(CELL);
        let (mut near, mut heads) = (Vec::with_capacity(atoms.len()), Vec::with_capacity(n_lines * (cells + 1)));
        let mut rest = &atoms[..];
        for line in 0..n_lines {
            let (mine, later) = rest.split_at(rest.partition_point(|a| (a.position as usize) < (line + 1) * width));
            rest = later;
            let first = near.len();
            // Copies of the line, each as far from the reach's start as it lies.
            let copies = if circular { reach.div_ceil(width) } else { 0 };
            for copy in 0..=2 * copies {
                for a in mine {
                    let x = a.position as usize - line * width + reach + copy * width;
                    let Some(x) = x.checked_sub(copies * width).filter(|x| *x < width + 2 * reach) else { continue };
                    let filter = a.filter as usize;
                    let start = filter / LANES * window.block_len() + filter % LANES;
                    near.push(Near { x: x as u32, filter: a.filter, start, value: a.value.f64() });
                }
            }
            let mut at = first;
            for cell in 0..cells {
                at += near[at..].iter().take_while(|b: &&Near| (b.x as usize) < cell * CELL).count();
                heads.push(at as u32);
            }
            heads.push(near.len() as u32);
        }
        Pairs { code, positions, circular, near, heads, cells }
    }

    /// The atoms of filter k.
    pub(super) fn atoms_of(&self, k: usize) -> &'a [Atom<T>] {
        let atoms = self.code.atoms();
        let [first, end] = [k, k + 1].map(|k| atoms.partition_point(|a| (a.filter as usize) < k));
        &atoms[first..end]
    }

    /// The coordinate's place on the axis, if it has one.
    fn wrap(&self, at: isize, axis: usize) -> Option<usize> {
        let n = self.positions[axis] as isize;
        if (0..n).contains(&at) {
            return Some(at as usize);
        }
        self.circular.then(|| at.rem_euclid(n) as usize)
    }

    /// Collects the products of atom `a` and its neighbours of the same filter and of later ones, with their places in the row of `a`.
    pub(super) fn add_neighbours<N: AddAssign + Copy + Default>(
        &self,
        a: &Atom<T>,
        window: &Window,
        number: &impl Fn(f64) -> N,
        products: &mut Products<N>,
    ) {
        let [_, height, width] = self.positions;
        let (p, k) = (a.position as usize, a.filter as usize);
        let [z, y, x] = [p / (height * width), p / width % height, p % width];
        let [rz, ry, rx] = window.reach();
        let (value, span) = (a.value.f64(), 2 * rx.unsigned_abs());
        let first_block = k / LANES * window.block_len();
        // From the column of the first neighbour's cell to the end of the last one's.
        let (from, to) = (x / CELL, (x + span) / CELL + 1);
        for tz in -rz..=rz {
            let Some(line_z) = self.wrap(z as isize + tz, 0) else { continue };
            for ty in -ry..=ry {
                let Some(line_y) = self.wrap(y as isize + ty, 1) else { continue };
                let heads = &self.heads[(line_z * height + line_y) * (self.cells + 1)..][..=self.cells];
                let near = &self.near[heads[from] as usize..heads[to] as usize];
                // Where the lags of this line begin.
                let start = window.at([tz, ty, -rx]) * LANES;
                let room = products.room(near.len());
                // Others are written too, and then written over: a branch would be mispredicted every other time.
                let mut n = 0;
                for b in near {
                    let lag = (b.x as usize).wrapping_sub(x);
                    // Of no meaning for those that are out of reach.
                    let place =
                        (b.start.wrapping_sub(first_block).wrapping_add(start)).wrapping_add(lag.wrapping_mul(LANES));
                    room[n] = (place, number(value * b.value));
                    n += usize::from(b.filter as usize >= k && lag <= span);
                }
                products.len += n;
            }
        }
    }
}
