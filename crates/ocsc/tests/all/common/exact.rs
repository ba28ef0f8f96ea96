//! The naive twin of objectives and gaps: the definition, tap by tap, in f64, for every boundary, mask, sign and weight.

use super::widen;
use ocsc::settings::{ActiveSetConfig, Boundary, Weights};
use ocsc::{Code, Dictionary, Real, Sample, Shape};

/// A problem on the grid that holds every atom: the sample with filter-minus-one pixels before and behind each axis.
pub(crate) struct Exact {
    filters: Vec<f64>,
    filter: Shape,
    grid: [usize; 3],
    positions: [usize; 3],
    /// x on the grid, (channel, grid), and which of its values count.
    x: Vec<f64>,
    counts: Vec<bool>,
    weights: Vec<f64>,
    nonnegative: bool,
}

/// What is true of a code.
pub(crate) struct Truth {
    pub objective: f64,
    /// The duality gap that the code's own residual proves.
    pub gap: f64,
}

impl Exact {
    pub(crate) fn new<T: Real>(
        d: &Dictionary<T>,
        x: &Sample<T>,
        beta: f64,
        boundary: Boundary,
        config: &ActiveSetConfig,
    ) -> Self {
        let (filter, s) = (d.shape(), x.shape());
        let [fs, ss] = [filter.spatial(), s.spatial()];
        let margin = if boundary == Boundary::Circular { [0; 3] } else { fs.map(|n| n - 1) };
        let grid: [usize; 3] = std::array::from_fn(|i| ss[i] + 2 * margin[i]);
        let positions = std::array::from_fn(|i| ss[i] + margin[i]);
        let pixels = grid.iter().product::<usize>();
        let (mut on_grid, mut counts) =
            (vec![0.0; s.channels * pixels], vec![boundary == Boundary::Zero; s.channels * pixels]);
        for (i, v) in x.data().iter().enumerate() {
            let p = [i / (s.height * s.width) % s.depth, i / s.width % s.height, i % s.width];
            let q: [usize; 3] = std::array::from_fn(|a| p[a] + margin[a]);
            let at = i / s.pixels() * pixels + (q[0] * grid[1] + q[1]) * grid[2] + q[2];
            on_grid[at] = v.f64();
            counts[at] = x.mask().is_none_or(|mask| mask[i]);
        }
        let weight = |k: usize| match &config.weights {
            Weights::PerFilter(weights) => beta * weights[k],
            _ => beta,
        };
        let weights = (0..d.n_filters()).map(weight).collect();
        let (filters, nonnegative) = (widen(d.data()), config.nonnegative);
        Exact { filters, filter, grid, positions, x: on_grid, counts, weights, nonnegative }
    }

    /// Calls `f(place on the grid, tap)` for every tap of filter k at position p that counts.
    fn atom(&self, k: usize, p: usize, mut f: impl FnMut(usize, f64)) {
        let ([_, ph, pw], s, [gd, gh, gw]) = (self.positions, self.filter, self.grid);
        let (z, y, x) = (p / (ph * pw), p / pw % ph, p % pw);
        for (i, tap) in self.filters[k * s.len()..][..s.len()].iter().enumerate() {
            let (c, dz, dy, dx) =
                (i / s.pixels(), i / (s.height * s.width) % s.depth, i / s.width % s.height, i % s.width);
            let at = ((c * gd + (z + dz) % gd) * gh + (y + dy) % gh) * gw + (x + dx) % gw;
            if self.counts[at] {
                f(at, *tap);
            }
        }
    }

    /// D z on the grid, where it counts.
    fn estimate<T: Real>(&self, code: &Code<T>) -> Vec<f64> {
        let mut e = vec![0.0; self.x.len()];
        for a in code.atoms() {
            self.atom(a.filter as usize, a.position as usize, |at, tap| e[at] += a.value.f64() * tap);
        }
        e
    }

    /// max_k |d_k^T t| / w_k over all positions; with signs, max_k d_k^T t / w_k.
    pub(crate) fn strongest(&self, t: &[f64]) -> f64 {
        let mut top = 0.0_f64;
        for k in 0..self.weights.len() {
            for p in 0..self.positions.iter().product() {
                let mut c = 0.0;
                self.atom(k, p, |at, tap| c += t[at] * tap);
                top = top.max(if self.nonnegative { c } else { c.abs() } / self.weights[k]);
            }
        }
        top
    }

    /// Objective and gap of a code, by 1/2 ||r - s r||^2 + sum w |z| - s (D z).r, in which no offset cancels.
    pub(crate) fn of<T: Real>(&self, code: &Code<T>) -> Truth {
        let e = self.estimate(code);
        let r: Vec<f64> = (0..e.len()).map(|i| if self.counts[i] { self.x[i] - e[i] } else { 0.0 }).collect();
        let penalty: f64 = code.atoms().iter().map(|a| self.weights[a.filter as usize] * a.value.f64().abs()).sum();
        let (r_r, e_r): (f64, f64) = (r.iter().map(|r| r * r).sum(), e.iter().zip(&r).map(|(e, r)| e * r).sum());
        let s = f64::min(1.0, 1.0 / self.strongest(&r));
        Truth { objective: 0.5 * r_r + penalty, gap: 0.5 * (1.0 - s) * (1.0 - s) * r_r + (penalty - s * e_r) }
    }
}
