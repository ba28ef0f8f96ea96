//! Sparse codes Z: a list of (filter, position, value).

use crate::text::counted;
use crate::{Boundary, Dictionary, Error, Real, Result, Sample, Shape, system};

/// Holds one coefficient: filter `filter` at `position`, scaled by `value`.
///
/// With the boundary `circular` the filter's first corner lies on that pixel of the sample. With `zero` and `free`, where filters
/// may stick out, codes are larger than samples: the corner lies at `position` minus the filter's lengths plus 1, on each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Atom<T> {
    /// k, below the number of filters.
    pub filter: u32,
    /// The flat index of (depth, height, width) in the code's spatial shape.
    pub position: u32,
    /// The coefficient.
    pub value: T,
}

/// Holds the non-zero coefficients of one sample, ordered by filter, then position.
#[derive(Clone, Debug, PartialEq)]
pub struct Code<T> {
    n_filters: usize,
    shape: [usize; 3],
    atoms: Vec<Atom<T>>,
}

impl<T: Real> Code<T> {
    /// Checks that every atom lies within (filter, depth, height, width), is finite, and occurs once.
    pub fn new(n_filters: usize, shape: [usize; 3], mut atoms: Vec<Atom<T>>) -> Result<Self> {
        let pixels = shape.iter().fold(1, |n: usize, &axis| n.saturating_mul(axis));
        if pixels > u32::MAX as usize || n_filters > u32::MAX as usize {
            return Err(Error::invalid(
                "code",
                "at most 2^32 positions and filters",
                format!("{n_filters} filters, {pixels} positions"),
            ));
        }
        for a in &atoms {
            if a.filter as usize >= n_filters || a.position as usize >= pixels || !a.value.is_finite() {
                return Err(Error::invalid(
                    "code",
                    format!("finite values with filters below {n_filters} and positions below {pixels}"),
                    format!("filter {}, position {}, value {}", a.filter, a.position, a.value),
                ));
            }
        }
        atoms.sort_unstable_by_key(|a| (a.filter, a.position));
        if let Some(w) = atoms.windows(2).find(|w| (w[0].filter, w[0].position) == (w[1].filter, w[1].position)) {
            return Err(Error::invalid(
                "code",
                "each coefficient once",
                format!("filter {}, position {} twice", w[0].filter, w[0].position),
            ));
        }
        Ok(Code { n_filters, shape, atoms })
    }

    /// Makes the code of all zeros.
    pub fn zero(n_filters: usize, shape: [usize; 3]) -> Self {
        Code { n_filters, shape, atoms: Vec::new() }
    }

    /// Takes the non-zeros of a dense array (filter, depth, height, width).
    pub fn from_dense(n_filters: usize, shape: [usize; 3], dense: &[T]) -> Self {
        let pixels = shape.iter().product();
        let mut atoms = Vec::new();
        for (filter, map) in dense.chunks(pixels).enumerate() {
            for (position, &value) in map.iter().enumerate().filter(|(_, v)| **v != T::zero()) {
                atoms.push(Atom { filter: filter as u32, position: position as u32, value });
            }
        }
        Code { n_filters, shape, atoms }
    }

    /// Returns the number of filters.
    pub fn n_filters(&self) -> usize {
        self.n_filters
    }

    /// Returns the spatial shape (depth, height, width) of each coefficient map.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Returns the non-zeros, ordered by filter, then position.
    pub fn atoms(&self) -> &[Atom<T>] {
        &self.atoms
    }

    /// Returns the number of non-zeros.
    pub fn nonzeros(&self) -> usize {
        self.atoms.len()
    }

    /// Returns ||Z||_1.
    pub fn l1(&self) -> f64 {
        self.atoms.iter().map(|a| a.value.f64().abs()).sum()
    }

    /// Returns the dense array (filter, depth, height, width): K times the sample's memory. Refused if the system has not as
    /// much free: the shape may come from a file, in which two numbers can claim billions of positions.
    pub fn to_dense(&self) -> Result<Vec<T>> {
        let pixels: usize = self.shape.iter().product();
        let need = [pixels, size_of::<T>()].iter().fold(self.n_filters as u64, |n, by| n.saturating_mul(*by as u64));
        let [depth, height, width] = self.shape;
        system::ensure_free(
            &format!("dense codes of {} on {depth}x{height}x{width}", counted(self.n_filters, "filter")),
            need,
        )?;
        let mut dense = vec![T::zero(); self.n_filters * pixels];
        for a in &self.atoms {
            dense[a.filter as usize * pixels + a.position as usize] = a.value;
        }
        Ok(dense)
    }

    /// Returns the relative change ||Z - other|| / ||Z||, as in the paper's stopping rule; zero for two empty codes.
    pub fn relative_change(&self, other: &Self) -> f64 {
        let key = |a: &Atom<T>| (a.filter, a.position);
        let (mut change, mut norm) = (0.0, 0.0);
        let mut others = other.atoms.iter().peekable();
        for a in &self.atoms {
            while let Some(b) = others.next_if(|b| key(b) < key(a)) {
                change += b.value.f64().powi(2);
            }
            let b = others.next_if(|b| key(b) == key(a)).map_or(0.0, |b| b.value.f64());
            change += (a.value.f64() - b).powi(2);
            norm += a.value.f64().powi(2);
        }
        change += others.map(|b| b.value.f64().powi(2)).sum::<f64>();
        if change == 0.0 { 0.0 } else { (change / norm.max(f64::MIN_POSITIVE)).sqrt() }
    }

    /// Returns D z on the pixels of the sample: every atom adds its filter at its position, and what sticks out of the sample
    /// wraps around (`circular`) or is cut off (`zero`, `free`).
    pub fn reconstruct(&self, dictionary: &Dictionary<T>, boundary: Boundary) -> Result<Sample<T>> {
        let (shape, estimate, _) = self.reconstruct_f64(dictionary, boundary)?;
        Sample::new(shape, estimate.into_iter().map(T::of).collect())
    }

    /// The sample's shape, D z on it before rounding, (channel, depth, height, width), and the energy of what was cut off.
    pub(crate) fn reconstruct_f64(&self, d: &Dictionary<T>, boundary: Boundary) -> Result<(Shape, Vec<f64>, f64)> {
        if self.n_filters != d.n_filters() {
            let expected = format!("{}, as the dictionary has", counted(d.n_filters(), "filter"));
            return Err(Error::invalid("code", expected, self.n_filters));
        }
        let f = d.shape();
        let margin = if boundary == Boundary::Circular { [0; 3] } else { f.spatial().map(|n| n - 1) };
        let size: [usize; 3] = std::array::from_fn(|i| self.shape[i].saturating_sub(margin[i]));
        let shape = Shape { channels: f.channels, depth: size[0], height: size[1], width: size[2] };
        d.check_sample_shape(shape)?;
        // The sample with a margin on both sides; on the circle there is none, and the remainders below wrap.
        let [depth, height, width] = std::array::from_fn(|i| size[i] + 2 * margin[i]);
        // The shape may come from a file, in which two numbers can claim billions of positions.
        let padded = Shape { channels: f.channels, depth, height, width }.len();
        let need = (padded.saturating_add(shape.len()) as u64).saturating_mul(size_of::<f64>() as u64);
        system::ensure_free(&format!("reconstructions of {shape}"), need)?;
        let mut sum = vec![0.0; padded];
        for a in &self.atoms {
            let p = a.position as usize;
            let (pd, ph, pw) =
                (p / (self.shape[1] * self.shape[2]), p / self.shape[2] % self.shape[1], p % self.shape[2]);
            let value = a.value.f64();
            for (row, taps) in d.filter(a.filter as usize).chunks(f.width).enumerate() {
                let (c, z, y) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
                let line = ((c * depth + (pd + z) % depth) * height + (ph + y) % height) * width;
                for (x, tap) in taps.iter().enumerate() {
                    sum[line + (pw + x) % width] += value * tap.f64();
                }
            }
        }
        if boundary == Boundary::Circular {
            return Ok((shape, sum, 0.0));
        }
        let mut inside = Vec::with_capacity(shape.len());
        for row in 0..shape.len() / shape.width {
            let (c, z, y) = (row / (shape.depth * shape.height), row / shape.height % shape.depth, row % shape.height);
            let start = ((c * depth + z + margin[0]) * height + y + margin[1]) * width + margin[2];
            inside.extend_from_slice(&sum[start..][..shape.width]);
        }
        let energy = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
        let outside = energy(&sum) - energy(&inside);
        Ok((shape, inside, outside.max(0.0)))
    }
}
