//! The naive twin of the reconstruction for every boundary.

use ocsc::settings::Boundary;
use ocsc::{Code, Dictionary, Sample, Shape};

/// How many positions each axis has.
pub(crate) fn positions(sample: Shape, filter: Shape, boundary: Boundary) -> [usize; 3] {
    let more = |n: usize| if boundary == Boundary::Circular { 0 } else { n - 1 };
    std::array::from_fn(|i| sample.spatial()[i] + more(filter.spatial()[i]))
}

/// 1/2 ||x - D z||^2 tap by tap; what sticks out counts against zero, or not at all.
pub(crate) fn direct(x: &Sample<f64>, z: &Code<f64>, d: &Dictionary<f64>, boundary: Boundary) -> f64 {
    let (s, f) = (x.shape(), d.shape());
    let [_, ph, pw] = z.shape();
    let margin = f.spatial().map(|n| if boundary == Boundary::Circular { 0 } else { n - 1 });
    let big: [usize; 3] = std::array::from_fn(|i| s.spatial()[i] + 2 * margin[i]);
    let mut residual = vec![0.0; f.channels * big.iter().product::<usize>()];
    let at = |c: usize, q: [usize; 3]| ((c * big[0] + q[0] % big[0]) * big[1] + q[1] % big[1]) * big[2] + q[2] % big[2];
    for (i, v) in x.data().iter().enumerate() {
        let q = [i / (s.height * s.width) % s.depth, i / s.width % s.height, i % s.width];
        residual[at(i / s.pixels(), std::array::from_fn(|a| q[a] + margin[a]))] = *v;
    }
    for a in z.atoms() {
        let p = a.position as usize;
        let p = [p / (ph * pw), p / pw % ph, p % pw];
        for (i, tap) in d.filter(a.filter as usize).iter().enumerate() {
            let q = [i / (f.height * f.width) % f.depth, i / f.width % f.height, i % f.width];
            residual[at(i / f.pixels(), std::array::from_fn(|a| p[a] + q[a]))] -= a.value * tap;
        }
    }
    let mut sum = 0.0;
    for (i, r) in residual.iter().enumerate() {
        let q = [i / (big[1] * big[2]) % big[0], i / big[2] % big[1], i % big[2]];
        let inside = (0..3).all(|a| q[a] >= margin[a] && q[a] < margin[a] + s.spatial()[a]);
        if inside || boundary == Boundary::Zero {
            sum += 0.5 * r * r;
        }
    }
    sum
}
