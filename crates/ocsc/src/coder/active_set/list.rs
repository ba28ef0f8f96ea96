//! The active list: its atoms by tile, and descent over the tiles that are not done yet.

use super::descend::{Active, Setting, Sweep};
use super::scan::Candidate;
use super::tiling::Tiling;
use crate::Real;
use crate::sharing::Sharing;
use crate::simd::dispatch;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Every so many sweeps all atoms are visited, in the others only those that are not zero.
const FULL: usize = 8;

/// Filters of more blocks of columns than this do not take steps below this fraction of what descent is to reach. For small ones the
/// branch would be mispredicted often, and cost more than it saves.
const MANY_BLOCKS: usize = 32;
const NEGLIGIBLE: f64 = 0.2;

/// A phase with fewer atoms than this is not shared between threads.
const WORTH_SHARING: usize = 64;

/// The atoms by band, each sorted by (tile, line, column, filter).
#[derive(Default)]
pub(super) struct List<T> {
    bands: Vec<Band<T>>,
    /// How far each tile may be from its optimum: its largest step, or the excess of what joined it, since it was last
    /// found to be done; (bands, tiles).
    heat: Vec<T>,
}

/// The atoms of a band.
struct Band<T> {
    atoms: Vec<Active<T>>,
    /// Where the atoms of each tile start, and the end.
    starts: Vec<usize>,
}

/// A band's share of a sweep.
struct Task<'a, T> {
    atoms: &'a mut [Active<T>],
    canvas: &'a mut [T],
    base: usize,
    heat: &'a mut [T],
    /// Where the atoms of each of its tiles start, and the end; and which tiles are to be visited.
    starts: &'a [usize],
    due: &'a [bool],
}

impl<T: Real> List<T> {
    /// The list of these atoms, of whose values nothing is known.
    pub(super) fn new(tiling: &Tiling, mut atoms: Vec<Active<T>>) -> Self {
        let heat = T::of(if atoms.is_empty() { 0.0 } else { f64::INFINITY });
        atoms.par_sort_unstable_by_key(key);
        atoms.dedup_by_key(|a| key(a));
        let empty = |_| Band { atoms: Vec::new(), starts: vec![0; tiling.n_tiles + 1] };
        let mut list =
            List { bands: (0..tiling.len()).map(empty).collect(), heat: vec![heat; tiling.len() * tiling.n_tiles] };
        for chunk in atoms.chunk_by(|a, b| a.band == b.band) {
            list.bands[chunk[0].band as usize].set(chunk.to_vec());
        }
        list
    }

    /// All atoms.
    pub(super) fn atoms(&self) -> impl Iterator<Item = &Active<T>> {
        self.bands.iter().flat_map(|band| &band.atoms)
    }

    /// How many atoms there are.
    pub(super) fn len(&self) -> usize {
        self.bands.iter().map(|band| band.atoms.len()).sum()
    }

    /// How many bands there are.
    pub(super) fn n_bands(&self) -> usize {
        self.bands.len()
    }

    /// Changes all atoms, of which everything but the place may be changed.
    pub(super) fn change(&mut self, change: impl Fn(&mut Active<T>) + Sync) {
        self.bands.par_iter_mut().for_each(|band| band.atoms.iter_mut().for_each(&change));
    }

    /// Nothing is known of how far any tile is from its optimum: the problem has changed.
    pub(super) fn warm_up(&mut self) {
        self.heat.fill(T::of(f64::INFINITY));
    }

    /// Gives every atom another weight, unless there are none; `units` are the weights of filters, in which steps are measured.
    pub(super) fn reweigh(&mut self, tiling: &Tiling, weights: &[f64], units: &[T]) {
        let atoms = self.bands.iter_mut().flat_map(|band| &mut band.atoms);
        for (atom, weight) in atoms.zip(weights) {
            let (new, heat) = (T::of(*weight), &mut self.heat[slot(tiling, atom)]);
            *heat = heat.at_least((new - atom.weight).abs() / units[atom.filter as usize]);
            atom.weight = new;
        }
    }

    /// The atoms of a band.
    pub(super) fn band(&self, band: usize) -> &[Active<T>] {
        &self.bands[band].atoms
    }

    /// Drops zeros.
    pub(super) fn drop_zeros(&mut self) {
        self.bands.par_iter_mut().for_each(|band| band.atoms.retain(|a| a.value != T::zero()));
    }

    /// Adds candidates, in the order of lines of `width` positions, columns and filters, as atoms that are zero; those already on the
    /// list stay as they are.
    pub(super) fn extend(
        &mut self,
        tiling: &Tiling,
        width: usize,
        candidates: &[Candidate],
        atom: impl Fn(&Candidate) -> Active<T> + Sync,
    ) {
        debug_assert!(candidates.is_sorted_by_key(|c| (c.position, c.filter)));
        let n_tiles = tiling.n_tiles;
        let bands = self.bands.par_iter_mut().zip(self.heat.par_chunks_mut(n_tiles)).enumerate();
        bands.for_each(|(number, (band, heat))| {
            let lines = tiling.lines(number);
            let before = |line: usize| candidates.partition_point(|c| (c.position as usize) < line * width);
            let mine = &candidates[before(lines.start)..before(lines.end)];
            // Sorted by tile in one pass; within a tile they are in order.
            let tile = |c: &Candidate| tiling.tile(c.position as usize % width);
            let mut places = vec![0; n_tiles + 1];
            for c in mine {
                let (tile, excess) = (tile(c), (f64::from(c.strength) - 1.0).max(0.0));
                heat[tile] = heat[tile].at_least(T::of(excess));
                places[tile + 1] += 1;
            }
            (1..places.len()).for_each(|i| places[i] += places[i - 1]);
            let mut order = vec![0; mine.len()];
            for (i, c) in mine.iter().enumerate() {
                let place = &mut places[tile(c)];
                order[*place] = i;
                *place += 1;
            }
            let listed = std::mem::take(&mut band.atoms);
            band.set(merged(listed, order.into_iter().map(|i| atom(&mine[i]))));
        });
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
        let phases = tiling.phases();
        let sweeps = |sharing: &Sharing| self.sweeps(sharing, tiling, &phases, setting, canvas, small, max_sweeps);
        Sharing::between(phases[0].len(), sweeps);
    }

    /// The sweeps of [`List::descend`].
    #[allow(clippy::too_many_arguments, reason = "those of `descend`, and what its threads share")]
    fn sweeps(
        &mut self,
        sharing: &Sharing,
        tiling: &Tiling,
        phases: &[Vec<usize>],
        setting: &Setting<'_, T>,
        canvas: &mut [T],
        small: f64,
        max_sweeps: usize,
    ) {
        let is_large = setting.frame.filter_blocks() > MANY_BLOCKS;
        let negligible = T::of(if is_large { NEGLIGIBLE * small } else { -1.0 });
        let small = T::of(small);
        // The largest steps of the last sweep, and all since the last full one.
        let (mut last, mut since) = (self.heat.clone(), self.heat.clone());
        // The tiles that a sweep visits.
        let mut due = vec![false; since.len()];
        let mut full = true;
        for sweep in 0..max_sweeps {
            full = full || sweep % FULL == 0;
            let mut visited = false;
            for phase in phases {
                // Decided before the phase, so that threads change nothing.
                let hot = if full { &since } else { &last };
                for (band, tile) in phase.iter().flat_map(|band| (0..tiling.n_tiles).map(move |tile| (*band, tile))) {
                    due[band * tiling.n_tiles + tile] = tiling.any_near(band, tile, |n| hot[n] > small);
                }
                for &band in phase {
                    last[band * tiling.n_tiles..][..tiling.n_tiles].fill(T::zero());
                }
                let tasks = self.tasks(tiling, phase, &due, canvas, &mut last);
                let run = |task: Task<'_, T>| {
                    let order = task.order(full);
                    let Task { atoms, canvas, base, heat, .. } = task;
                    dispatch(Sweep { setting, atoms, order: &order, canvas, base, negligible, heat });
                    !order.is_empty()
                };
                visited |= share(sharing, tasks, &run);
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

    /// The shares of the bands of one phase that have something to visit; they have neither atoms nor pixels in common.
    fn tasks<'a>(
        &'a mut self,
        tiling: &Tiling,
        phase: &[usize],
        due: &'a [bool],
        canvas: &'a mut [T],
        heat: &'a mut [T],
    ) -> Vec<Task<'a, T>> {
        let n_tiles = tiling.n_tiles;
        let (mut bands, mut canvas, mut heat) = (&mut self.bands[..], canvas, heat);
        let mut done = [0; 3];
        let mut tasks = Vec::with_capacity(phase.len());
        for &band in phase {
            let tiles = band * n_tiles..(band + 1) * n_tiles;
            let reach = tiling.reach(band);
            let (mine, base) = (take(&mut canvas, &mut done[0], reach.clone()), reach.start);
            let [Band { atoms, starts }] = take(&mut bands, &mut done[1], band..band + 1) else { continue };
            let heat = take(&mut heat, &mut done[2], tiles.clone());
            let task = Task { atoms, canvas: mine, base, heat, starts, due: &due[tiles] };
            if task.len() > 0 {
                tasks.push(task);
            }
        }
        tasks
    }
}

/// Runs the tasks of a phase, on several threads if they are worth it; returns whether any of them visited an atom.
fn share<'a, T: Real>(sharing: &Sharing, tasks: Vec<Task<'a, T>>, run: &(dyn Fn(Task<'a, T>) -> bool + Sync)) -> bool {
    if tasks.len() == 1 || tasks.iter().map(Task::len).sum::<usize>() < WORTH_SHARING {
        return tasks.into_iter().fold(false, |visited, task| run(task) | visited);
    }
    let visited = AtomicBool::new(false);
    let tasks: Vec<Mutex<Option<Task<'a, T>>>> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    sharing.for_each(tasks.len(), &|i| {
        let task = tasks[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        if task.is_some_and(run) {
            visited.store(true, Ordering::Relaxed);
        }
    });
    visited.into_inner()
}

impl<T> Band<T> {
    /// Takes other atoms and finds where those of each tile start.
    fn set(&mut self, atoms: Vec<Active<T>>) {
        self.starts.fill(0);
        atoms.iter().for_each(|a| self.starts[a.tile as usize + 1] += 1);
        (1..self.starts.len()).for_each(|i| self.starts[i] += self.starts[i - 1]);
        self.atoms = atoms;
    }
}

impl<T: Real> Task<'_, T> {
    /// The atoms of each tile that is due.
    fn due(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let ranges = self.starts.windows(2).map(|pair| pair[0]..pair[1]);
        ranges.zip(self.due).filter(|(_, due)| **due).map(|(range, _)| range)
    }

    /// How many atoms may be visited.
    fn len(&self) -> usize {
        self.due().map(|range| range.len()).sum()
    }

    /// The atoms to be visited.
    fn order(&self, full: bool) -> Vec<u32> {
        let mut order = vec![0; self.len()];
        let mut n = 0;
        for i in self.due().flatten() {
            // Without a branch: it would be mispredicted often.
            order[n] = i as u32;
            n += usize::from(full || self.atoms[i].value != T::zero());
        }
        order.truncate(n);
        order
    }
}

/// What atoms are sorted by: (band, tile, line, column, filter), in three numbers, which compare faster than five.
fn key<T>(a: &Active<T>) -> (u64, u64, u32) {
    let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    (two(a.band, a.tile), two(a.line, a.column), a.filter)
}

/// Merges two sorted lists. Where both have an atom, that of the first stays.
fn merged<T: Real>(first: Vec<Active<T>>, second: impl ExactSizeIterator<Item = Active<T>>) -> Vec<Active<T>> {
    let mut all = Vec::with_capacity(first.len() + second.len());
    let mut second = second.peekable();
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
