//! The active list: its atoms by tile, and descent over the tiles that are not done yet.

use super::descend::{Active, Setting, Sweep};
use super::tiling::Tiling;
use crate::Real;
use crate::simd::dispatch;
use rayon::prelude::*;

/// Every so many sweeps all atoms are visited, in the others only those that are not zero.
const FULL: usize = 8;
/// Steps below this fraction of what descent is to reach are not taken.
const NEGLIGIBLE: f64 = 0.2;

/// The atoms, sorted by (band, tile, line, column, filter).
pub(super) struct List<T> {
    atoms: Vec<Active<T>>,
    /// Where the atoms of each tile start, and the end.
    starts: Vec<usize>,
    /// How far each tile may be from its optimum: its largest step, or the excess of what joined it, since it was last
    /// found to be done.
    heat: Vec<T>,
}

/// A band's share of a sweep.
struct Task<'a, T> {
    atoms: &'a mut [Active<T>],
    canvas: &'a mut [T],
    base: usize,
    heat: &'a mut [T],
    order: Vec<u32>,
}

impl<T: Real> List<T> {
    /// The list of these atoms, of whose values nothing is known.
    pub(super) fn new(tiling: &Tiling, atoms: Vec<Active<T>>) -> Self {
        let n = tiling.len() * tiling.n_tiles;
        let heat = T::of(if atoms.is_empty() { 0.0 } else { f64::INFINITY });
        let mut list = List { atoms, starts: vec![0; n + 1], heat: vec![heat; n] };
        list.sort(tiling);
        list
    }

    /// All atoms.
    pub(super) fn atoms(&self) -> &[Active<T>] {
        &self.atoms
    }

    /// All atoms, of which everything but the place may be changed.
    pub(super) fn atoms_mut(&mut self) -> &mut [Active<T>] {
        &mut self.atoms
    }

    /// Nothing is known of how far any tile is from its optimum: the problem has changed.
    pub(super) fn warm_up(&mut self) {
        self.heat.fill(T::of(f64::INFINITY));
    }

    /// Gives every atom another weight, unless there are none; `units` are the weights of filters, in which steps are measured.
    pub(super) fn reweigh(&mut self, tiling: &Tiling, weights: &[f64], units: &[T]) {
        for (atom, weight) in self.atoms.iter_mut().zip(weights) {
            let (new, heat) = (T::of(*weight), &mut self.heat[slot(tiling, atom)]);
            *heat = heat.at_least((new - atom.weight).abs() / units[atom.filter as usize]);
            atom.weight = new;
        }
    }

    /// The atoms of a band.
    pub(super) fn band(&self, tiling: &Tiling, band: usize) -> &[Active<T>] {
        &self.atoms[self.starts[band * tiling.n_tiles]..self.starts[(band + 1) * tiling.n_tiles]]
    }

    /// Drops zeros.
    pub(super) fn drop_zeros(&mut self) {
        self.atoms.retain(|a| a.value != T::zero());
    }

    /// Adds atoms that are zero, each with its excess |c| / w - 1; those already on the list stay as they are.
    pub(super) fn extend(&mut self, tiling: &Tiling, joining: impl Iterator<Item = (Active<T>, T)>) {
        let mut joining: Vec<Active<T>> = joining
            .map(|(atom, excess)| {
                let heat = &mut self.heat[slot(tiling, &atom)];
                *heat = heat.at_least(excess);
                atom
            })
            .collect();
        joining.par_sort_unstable_by_key(key);
        let listed = std::mem::take(&mut self.atoms);
        self.atoms = merged(listed, joining);
        self.set_starts(tiling);
    }

    fn sort(&mut self, tiling: &Tiling) {
        self.atoms.par_sort_unstable_by_key(key);
        self.atoms.dedup_by_key(|a| key(a));
        self.set_starts(tiling);
    }

    /// Finds where the atoms of each tile start.
    fn set_starts(&mut self, tiling: &Tiling) {
        self.starts.fill(0);
        self.atoms.iter().for_each(|a| self.starts[slot(tiling, a) + 1] += 1);
        (1..self.starts.len()).for_each(|i| self.starts[i] += self.starts[i - 1]);
    }

    /// Sweeps over the tiles that are not done until all steps are at most `small`, or `max_sweeps` were made.
    pub(super) fn descend(
        &mut self,
        tiling: &Tiling,
        setting: &Setting<'_, T>,
        canvas: &mut [T],
        small: f64,
        max_sweeps: usize,
    ) {
        let (small, negligible) = (T::of(small), T::of(NEGLIGIBLE * small));
        let phases = tiling.phases();
        // The largest steps of the last sweep, and all since the last full one.
        let (mut last, mut since) = (self.heat.clone(), self.heat.clone());
        // The tiles that a sweep visits.
        let mut due = vec![false; since.len()];
        let mut full = true;
        for sweep in 0..max_sweeps {
            full = full || sweep % FULL == 0;
            let mut visited = false;
            for phase in &phases {
                // Decided before the phase, so that threads change nothing.
                let hot = if full { &since } else { &last };
                for (band, tile) in phase.iter().flat_map(|band| (0..tiling.n_tiles).map(move |tile| (*band, tile))) {
                    due[band * tiling.n_tiles + tile] = tiling.neighbours(band, tile).any(|n| hot[n] > small);
                }
                let order = |band: &usize| self.order(tiling, *band, full, |tile| due[band * tiling.n_tiles + tile]);
                let orders: Vec<Vec<u32>> = phase.par_iter().map(order).collect();
                visited |= orders.iter().any(|order| !order.is_empty());
                for &band in phase {
                    last[band * tiling.n_tiles..][..tiling.n_tiles].fill(T::zero());
                }
                let tasks = self.tasks(tiling, phase, orders, canvas, &mut last);
                tasks.into_par_iter().for_each(|task| {
                    let Task { atoms, canvas, base, heat, order } = task;
                    dispatch(Sweep { setting, atoms, order: &order, canvas, base, negligible, heat });
                });
            }
            let quiet = last.iter().all(|heat| *heat <= small);
            if full {
                // Tiles that were not due keep their heat: a later descent to smaller steps must find them.
                let visits = since.iter_mut().zip(&last).zip(&due).filter(|(_, due)| **due);
                visits.for_each(|((since, last), _)| *since = *last);
                if quiet {
                    break;
                }
            } else {
                since.iter_mut().zip(&last).for_each(|(since, last)| *since = since.at_least(*last));
            }
            // When only the non-zeros have come to rest, look at the others.
            full = !full && (quiet || !visited);
        }
        self.heat = since;
    }

    /// The atoms of a band to be visited, counted from the band's first.
    fn order(&self, tiling: &Tiling, band: usize, full: bool, due: impl Fn(usize) -> bool) -> Vec<u32> {
        let first = self.starts[band * tiling.n_tiles];
        let mut visits: Vec<u32> = Vec::new();
        for tile in 0..tiling.n_tiles {
            let slot = band * tiling.n_tiles + tile;
            let range = self.starts[slot]..self.starts[slot + 1];
            if !range.is_empty() && due(tile) {
                let chosen = range.filter(|i| full || self.atoms[*i].value != T::zero());
                visits.extend(chosen.map(|i| (i - first) as u32));
            }
        }
        visits
    }

    /// The shares of the bands of one phase, which have neither atoms nor pixels in common.
    fn tasks<'a>(
        &'a mut self,
        tiling: &Tiling,
        phase: &[usize],
        orders: Vec<Vec<u32>>,
        canvas: &'a mut [T],
        heat: &'a mut [T],
    ) -> Vec<Task<'a, T>> {
        let n_tiles = tiling.n_tiles;
        let (mut atoms, mut canvas, mut heat) = (&mut self.atoms[..], canvas, heat);
        let mut done = [0; 3];
        let mut tasks = Vec::with_capacity(phase.len());
        for (&band, order) in phase.iter().zip(orders) {
            let reach = tiling.reach(band);
            let listed = self.starts[band * n_tiles]..self.starts[(band + 1) * n_tiles];
            let (mine, base) = (take(&mut canvas, &mut done[0], reach.clone()), reach.start);
            let atoms = take(&mut atoms, &mut done[1], listed);
            let heat = take(&mut heat, &mut done[2], band * n_tiles..(band + 1) * n_tiles);
            if !order.is_empty() {
                tasks.push(Task { atoms, canvas: mine, base, heat, order });
            }
        }
        tasks
    }
}

/// What atoms are sorted by: (band, tile, line, column, filter), in three numbers, which compare faster than five.
fn key<T>(a: &Active<T>) -> (u64, u64, u32) {
    let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    (two(a.band, a.tile), two(a.line, a.column), a.filter)
}

/// Merges two sorted lists. Where both have an atom, that of the first stays.
fn merged<T: Real>(first: Vec<Active<T>>, second: Vec<Active<T>>) -> Vec<Active<T>> {
    if first.is_empty() {
        return second;
    }
    let mut all = Vec::with_capacity(first.len() + second.len());
    let mut second = second.into_iter().peekable();
    for atom in first {
        let place = key(&atom);
        while let Some(other) = second.next_if(|other| key(other) < place) {
            all.push(other);
        }
        second.next_if(|other| key(other) == place);
        all.push(atom);
    }
    all.extend(second);
    all
}

/// Cuts `range` out of `rest`, of which `done` numbers were cut off before.
fn take<'a, T>(rest: &mut &'a mut [T], done: &mut usize, range: std::ops::Range<usize>) -> &'a mut [T] {
    let whole = std::mem::take(rest);
    let (_, tail) = whole.split_at_mut(range.start - *done);
    let (mine, tail) = tail.split_at_mut(range.len());
    (*rest, *done) = (tail, range.end);
    mine
}

/// The index of an atom's tile among (tiling, tiles).
fn slot<T>(tiling: &Tiling, atom: &Active<T>) -> usize {
    atom.band as usize * tiling.n_tiles + atom.tile as usize
}
