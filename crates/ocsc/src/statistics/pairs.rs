//! The pairs of a code's atoms that are closer than a filter, and where their products belong in the statistics.

use super::{LANES, Window};
use crate::{Atom, Code, Real};
use std::ops::AddAssign;

/// The pairs of one code.
pub(crate) struct Pairs<'a, T> {
    code: &'a Code<T>,
    positions: [usize; 3],
    circular: bool,
    /// All atoms in raster order.
    near: Vec<Near>,
    /// Where each line's atoms start, and the end.
    starts: Vec<usize>,
}

/// An atom as its neighbours see it.
struct Near {
    x: isize,
    filter: usize,
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
        let positions = code.shape();
        let mut atoms: Vec<&Atom<T>> = code.atoms().iter().collect();
        atoms.sort_unstable_by_key(|a| (a.position, a.filter));
        let n_lines = positions[0] * positions[1];
        let mut starts = vec![0; n_lines + 1];
        atoms.iter().for_each(|a| starts[a.position as usize / positions[2] + 1] += 1);
        (0..n_lines).for_each(|i| starts[i + 1] += starts[i]);
        let near = |a: &Atom<T>| Near {
            x: (a.position as usize % positions[2]) as isize,
            filter: a.filter as usize,
            start: a.filter as usize / LANES * window.block_len() + a.filter as usize % LANES,
            value: a.value.f64(),
        };
        Pairs { code, positions, circular, near: atoms.into_iter().map(near).collect(), starts }
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
        let [z, y, x] = [p / (height * width), p / width % height, p % width].map(|v| v as isize);
        let [rz, ry, rx] = window.reach();
        let (value, width) = (a.value.f64(), width as isize);
        let first_block = k / LANES * window.block_len();
        // Copies of a line, shifted by multiples of its length, that reach into the window.
        let copies = if self.circular { -((width - 1 + rx - x) / width)..=(x + rx) / width } else { 0..=0 };
        for tz in -rz..=rz {
            let Some(line_z) = self.wrap(z + tz, 0) else { continue };
            for ty in -ry..=ry {
                let Some(line_y) = self.wrap(y + ty, 1) else { continue };
                let line = line_z * height + line_y;
                let near = &self.near[self.starts[line]..self.starts[line + 1]];
                if near.is_empty() {
                    continue;
                }
                let start = window.at([tz, ty, 0]);
                for copy in copies.clone() {
                    let shift = copy * width - x;
                    let first = near.partition_point(|b| b.x + shift < -rx);
                    let room = products.room(near.len() - first);
                    // Earlier filters are written too, and then written over: a branch would be mispredicted every other time.
                    let mut n = 0;
                    for b in near[first..].iter().take_while(|b| b.x + shift <= rx) {
                        let lag = start.wrapping_add_signed(b.x + shift);
                        room[n] =
                            (b.start.wrapping_sub(first_block).wrapping_add(lag * LANES), number(value * b.value));
                        n += usize::from(b.filter >= k);
                    }
                    products.len += n;
                }
            }
        }
    }
}
