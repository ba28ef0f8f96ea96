//! Images that need no photographer, for demonstrations, tests and the filters that restoration starts from: dead leaves.
//!
//! The dead-leaves model (Matheron 1968; Lee, Mumford and Huang 2001) covers the plane with opaque shapes that fall on
//! each other at random. With radii of density p(r) ~ r^-3 between a smallest and a largest one, it looks the same at
//! every scale, and its statistics are those of photographs: a power spectrum that falls about as 1/f^2, derivatives
//! with a sharp peak and heavy tails (large calm areas, few strong edges), edges of every orientation that end at
//! T-junctions. These are the reasons why a dictionary learned from photographs has oriented, localised, band-pass
//! filters, so one learned from dead leaves has them too, without shipping a photograph.
//!
//! On top of the plain model each leaf, an ellipse or a convex polygon, has
//! - an albedo of its own,
//! - a surface: fine grain, an oriented and slightly warped grating (stripes, blades, ripples), or stretched or round
//!   noise (bark, fur, stone),
//! - linear shading, as a tilted surface under one light has, and a darker rim, as a bulging one has.
//!
//! Leaves are laid from the top down, each filling what is still bare, until nothing is: an exact sample of the
//! stationary model that never paints a pixel twice. The picture is drawn at three times the size and averaged down,
//! which softens edges as a lens and a sensor do. The same seed gives the same picture.

use crate::{Sample, Shape};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

/// Drawn pixels per pixel, on each axis.
const FINE: usize = 3;
/// The smallest radius, in pixels.
const MIN_RADIUS: f64 = 3.0;
/// The largest radius, as a part of the picture's shorter side.
const MAX_RADIUS: f64 = 0.5;
/// With ordinary luck a picture is covered long before; what is bare after so many leaves per pixel stays in shadow.
const MAX_LEAVES_PER_PIXEL: usize = 8;
/// The brightness behind all leaves.
const SHADOW: f64 = 0.05;
/// How far the logarithms of the colours of a leaf lie apart, and those of the light of a picture, as standard deviations.
const SATURATION: f64 = 0.15;
const SATURATION_OF_LIGHT: f64 = 0.1;

/// A gray picture (1, 1, height, width) with values in [0, 1]; none if it would have no pixels, or too many to count.
pub fn dead_leaves(seed: u64, height: usize, width: usize) -> Option<Sample<f64>> {
    picture(seed, height, width, 1)
}

/// The same picture in colour, (3, 1, height, width): each leaf has a tint of its own, and so has the light.
pub fn coloured_dead_leaves(seed: u64, height: usize, width: usize) -> Option<Sample<f64>> {
    picture(seed, height, width, 3)
}

fn picture(seed: u64, height: usize, width: usize, channels: usize) -> Option<Sample<f64>> {
    let fine_pixels = height.checked_mul(width)?.checked_mul(FINE * FINE)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (rows, columns) = (height * FINE, width * FINE);
    let mut fine = vec![f32::NAN; fine_pixels.checked_mul(channels)?];
    let mut bare = fine_pixels;
    let largest = (MAX_RADIUS * height.min(width) as f64).max(2.0 * MIN_RADIUS);
    for _ in 0..height * width * MAX_LEAVES_PER_PIXEL {
        let leaf = Leaf::random(&mut rng, height as f64, width as f64, largest);
        bare -= leaf.lay(&mut fine, rows, columns, seed);
        if bare == 0 {
            break;
        }
    }
    let data = fine.chunks_exact(fine_pixels.max(1)).flat_map(|plane| average_down(plane, height, width)).collect();
    Sample::new(Shape { channels, ..Shape::image(height, width) }, data).ok()
}

/// Averages FINE x FINE blocks.
fn average_down(fine: &[f32], height: usize, width: usize) -> Vec<f64> {
    let mut data = Vec::with_capacity(height * width);
    for y in 0..height {
        for x in 0..width {
            let block = (0..FINE * FINE).map(|i| fine[(y * FINE + i / FINE) * width * FINE + x * FINE + i % FINE]);
            let sum: f64 = block.map(|v| if v.is_nan() { SHADOW } else { f64::from(v) }).sum();
            data.push(sum / (FINE * FINE) as f64);
        }
    }
    data
}

/// One opaque shape with its surface.
struct Leaf {
    /// The centre, in pixels from the first corner.
    y: f64,
    x: f64,
    radius: f64,
    outline: Outline,
    albedo: f64,
    surface: Surface,
    /// The change of brightness per pixel, down and to the right.
    slope: (f64, f64),
    /// How much darker the rim is than the centre.
    bulge: f64,
}

/// The shape of a leaf around its centre, within its radius.
enum Outline {
    /// The direction of the long axis, as (cos, sin), and short over long.
    Ellipse((f64, f64), f64),
    /// Sides: the direction (cos, sin) of each normal and the distance from the centre.
    Polygon(Vec<(f64, f64, f64)>),
}

/// What is painted on a leaf: factors of its albedo, around 1.
struct Surface {
    amplitude: f64,
    /// Waves or cells per pixel, along and across the texture, each as (down, right).
    along: (f64, f64),
    across: (f64, f64),
    texture: Texture,
    seed: u64,
}

enum Texture {
    /// Smooth noise of two octaves.
    Noise,
    /// Waves across, bent by noise and sharpened by this number towards stripes.
    Grating(f64),
}

impl Leaf {
    fn random(rng: &mut ChaCha8Rng, height: f64, width: f64, largest: f64) -> Self {
        // The inverse of the distribution function of p(r) ~ r^-3 on [MIN_RADIUS, largest].
        let (a, b) = (MIN_RADIUS.powi(-2), largest.powi(-2));
        let radius = (a + rng.random::<f64>() * (b - a)).powf(-0.5);
        // Leaves whose centre lies outside reach in, so that the margins are like the middle.
        let y = rng.random_range(-largest..height + largest);
        let x = rng.random_range(-largest..width + largest);
        let outline = if rng.random_bool(0.5) { Outline::ellipse(rng) } else { Outline::polygon(rng) };
        let albedo = rng.random_range(0.1..0.95);
        let (tilt, strength) = (rng.random_range(0.0..TAU), rng.random_range(0.0..0.25) / radius);
        let slope = (strength * tilt.sin(), strength * tilt.cos());
        let bulge = rng.random_range(0.0..0.35);
        Leaf { y, x, radius, outline, albedo, surface: Surface::random(rng, radius), slope, bulge }
    }

    /// The share of its brightness that a leaf has in each colour, around 1, under the light of this picture.
    fn tint(&self, light: u64) -> [f64; 3] {
        let (own, of_light) = (chroma(self.surface.seed, SATURATION), chroma(light, SATURATION_OF_LIGHT));
        std::array::from_fn(|c| (own[c] + of_light[c]).exp())
    }

    /// Fills the bare pixels within the outline, in one gray plane or in three of colours, and returns how many they were.
    fn lay(&self, fine: &mut [f32], rows: usize, columns: usize, light: u64) -> usize {
        let scale = FINE as f64;
        let tint = self.tint(light);
        let (gray, others) = fine.split_at_mut(rows * columns);
        // Casts of negative numbers give 0, which is the clipping wanted.
        let range = |centre: f64, end: usize| {
            let (from, to) = ((centre - self.radius) * scale, (centre + self.radius) * scale + 1.0);
            (from as usize).min(end)..(to as usize).min(end)
        };
        let mut filled = 0;
        for row in range(self.y, rows) {
            let dy = (row as f64 + 0.5) / scale - self.y;
            for column in range(self.x, columns) {
                let at = row * columns + column;
                if !gray[at].is_nan() {
                    continue;
                }
                let dx = (column as f64 + 0.5) / scale - self.x;
                if !self.outline.holds(dy / self.radius, dx / self.radius) {
                    continue;
                }
                let brightness = self.brightness(dy, dx);
                if others.is_empty() {
                    gray[at] = brightness.clamp(0.0, 1.0) as f32;
                } else {
                    gray[at] = (tint[0] * brightness).clamp(0.0, 1.0) as f32;
                    for (plane, tint) in others.chunks_exact_mut(rows * columns).zip(&tint[1..]) {
                        plane[at] = (tint * brightness).clamp(0.0, 1.0) as f32;
                    }
                }
                filled += 1;
            }
        }
        filled
    }

    fn brightness(&self, dy: f64, dx: f64) -> f64 {
        let rim = (dy * dy + dx * dx) / (self.radius * self.radius);
        let shading = 1.0 + self.slope.0 * dy + self.slope.1 * dx - self.bulge * rim;
        self.albedo * shading * self.surface.at(dy, dx)
    }
}

impl Outline {
    fn ellipse(rng: &mut ChaCha8Rng) -> Self {
        let turn = rng.random_range(0.0..TAU);
        Outline::Ellipse((turn.cos(), turn.sin()), rng.random_range(0.3..1.0))
    }

    /// Three to six sides, with normals about evenly spread so that the polygon is closed.
    fn polygon(rng: &mut ChaCha8Rng) -> Self {
        let sides = rng.random_range(3..=6);
        let turn = rng.random_range(0.0..TAU);
        let side = |i: i32, rng: &mut ChaCha8Rng| {
            let angle = turn + (f64::from(i) + rng.random_range(-0.25..0.25)) * TAU / f64::from(sides);
            (angle.cos(), angle.sin(), rng.random_range(0.35..0.85))
        };
        Outline::Polygon((0..sides).map(|i| side(i, rng)).collect())
    }

    /// Whether a point, in units of the radius, lies inside.
    fn holds(&self, y: f64, x: f64) -> bool {
        y * y + x * x <= 1.0
            && match self {
                Outline::Ellipse((c, s), ratio) => {
                    let (long, short) = (c * x + s * y, (c * y - s * x) / ratio);
                    long * long + short * short <= 1.0
                }
                Outline::Polygon(sides) => sides.iter().all(|(c, s, distance)| c * x + s * y <= *distance),
            }
    }
}

impl Surface {
    fn random(rng: &mut ChaCha8Rng, radius: f64) -> Self {
        let kind = rng.random::<f64>();
        let angle = rng.random_range(0.0..TAU);
        // Log-uniform wavelengths, from what a few pixels can show up to the size of the leaf.
        let wavelength = 3.0 * (radius / 3.0).clamp(1.0, 5.0).powf(rng.random::<f64>());
        let strong = rng.random_range(0.05..0.4);
        let stretch = rng.random_range(1.0f64..6.0);
        let sharpness = rng.random_range(0.0..2.0);
        // Textures need room: on small leaves they would be clutter.
        let (texture, amplitude) = match kind {
            _ if radius < 2.0 * MIN_RADIUS => (Texture::Noise, 0.08),
            0.0..0.3 => (Texture::Noise, 0.08),
            0.3..0.55 => (Texture::Grating(sharpness), 0.8 * strong),
            _ => (Texture::Noise, 1.5 * strong),
        };
        let cell = if matches!(texture, Texture::Noise) { wavelength / 2.0 } else { wavelength };
        let (c, s) = (angle.cos() / cell, angle.sin() / cell);
        Surface { amplitude, along: (s / stretch, c / stretch), across: (c, -s), texture, seed: rng.random() }
    }

    fn at(&self, y: f64, x: f64) -> f64 {
        let (u, v) = (self.along.0 * y + self.along.1 * x, self.across.0 * y + self.across.1 * x);
        let wave = match self.texture {
            Texture::Noise => smooth_noise(u, v, self.seed) + 0.5 * smooth_noise(2.0 * u, 2.0 * v, !self.seed),
            Texture::Grating(sharpness) => {
                let bend = 0.35 * smooth_noise(0.5 * u, 0.3 * v, self.seed);
                let wave = (TAU * (v + bend)).sin() * (0.7 + 0.3 * smooth_noise(u, 0.5 * v, !self.seed));
                wave * (1.0 + sharpness) / (1.0 + sharpness * wave.abs())
            }
        };
        1.0 + self.amplitude * wave
    }
}

/// Logarithms of red, green and blue, of sum 0: as much of orange against blue as of green against purple.
fn chroma(seed: u64, deviation: f64) -> [f64; 3] {
    // Uniform numbers in [-1, 1] have a deviation of 0.577.
    let scale = deviation * 3.0_f64.sqrt();
    let (warm, green) = (scale * lattice(1, 0, seed), scale * lattice(2, 0, seed));
    let (a, b) = (0.5_f64.sqrt(), 6.0_f64.sqrt().recip());
    [a * warm - b * green, 2.0 * b * green, -a * warm - b * green]
}

/// Random numbers in [-1, 1] on the integer grid, smoothly interpolated.
fn smooth_noise(u: f64, v: f64, seed: u64) -> f64 {
    let (u0, v0) = (u.floor(), v.floor());
    let ease = |t: f64| t * t * (3.0 - 2.0 * t);
    let (fu, fv) = (ease(u - u0), ease(v - v0));
    let (i, j) = (u0 as i64, v0 as i64);
    let top = lattice(i, j, seed) * (1.0 - fu) + lattice(i + 1, j, seed) * fu;
    let bottom = lattice(i, j + 1, seed) * (1.0 - fu) + lattice(i + 1, j + 1, seed) * fu;
    top * (1.0 - fv) + bottom * fv
}

/// A hash of a grid point (the finaliser of SplitMix64), as a number in [-1, 1].
fn lattice(i: i64, j: i64, seed: u64) -> f64 {
    let mut h = seed ^ (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^= h >> 31;
    (h >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests;
