//! Sparse codes on disk, one `.npz` archive per sample.
//!
//! | array | type, shape | what |
//! |---|---|---|
//! | `filter` | i32, (n) | the filter of each non-zero |
//! | `position` | i32, (n, axes) | where its first corner lies, on the last one to three of depth, height, width |
//! | `value` | f32 or f64, (n) | the coefficient |
//! | `shape` | i64, (1 + axes) | the shape of the dense array: filters, then the spatial axes |
//!
//! and any single numbers the caller adds (objective, gap). Reading checks everything: the file may be anyone's.

use super::array::Array;
use super::axes::show_shape;
use super::npz::{self, Npz};
use super::{npy, write};
use anyhow::{Context, Result, anyhow, ensure};
use ocsc::checkpoint::replace_file;
use ocsc::{Atom, Code, Real};
use std::fs::File;
use std::path::Path;

/// Writes a code whose samples have `rank` spatial axes, replacing the file as a whole.
pub(crate) fn write_code<T: Real>(path: &Path, code: &Code<T>, rank: usize, extra: &[(&str, f64)]) -> Result<()> {
    write_checked(path, code, rank, extra).map_err(|e| anyhow!("{}: {e:#}", path.display()))
}

fn write_checked<T: Real>(path: &Path, code: &Code<T>, rank: usize, extra: &[(&str, f64)]) -> Result<()> {
    ensure!((1..=3).contains(&rank), "a code has one to three spatial axes, not {rank}");
    let shape = code.shape();
    let (hidden, axes) = shape.split_at(3 - rank);
    ensure!(hidden.iter().all(|&n| n == 1), "a code of shape {} has more than {rank} axes", show_shape(&shape));
    let n = code.nonzeros();
    let (mut filter, mut position, mut value) = (Vec::new(), Vec::new(), Vec::new());
    for atom in code.atoms() {
        filter.extend_from_slice(&i32::try_from(atom.filter)?.to_le_bytes());
        let mut place = [0; 3];
        let mut rest = atom.position as usize;
        for (p, len) in place.iter_mut().zip(shape).rev() {
            *p = rest % len;
            rest /= len;
        }
        for &p in &place[3 - rank..] {
            position.extend_from_slice(&i32::try_from(p)?.to_le_bytes());
        }
        atom.value.write_le(&mut value);
    }
    let dense: Vec<u8> = [&[code.n_filters()], axes].concat().iter().flat_map(|&n| (n as i64).to_le_bytes()).collect();
    let mut arrays = vec![
        ("filter", npy::encode("<i4", &[n], &filter)),
        ("position", npy::encode("<i4", &[n, rank], &position)),
        ("value", npy::encode(write::descr::<T>(), &[n], &value)),
        ("shape", npy::encode("<i8", &[rank + 1], &dense)),
    ];
    arrays.extend(extra.iter().map(|(name, number)| (*name, npy::encode("<f8", &[], &number.to_le_bytes()))));
    replace_file(path, |file| npz::write(&mut File::create(file)?, &arrays))
}

/// Reads a code and the number of its spatial axes.
pub(crate) fn read_code<T: Real>(path: &Path) -> Result<(Code<T>, usize)> {
    read_checked(path).map_err(|e| anyhow!("{}: {e:#}", path.display()))
}

fn read_checked<T: Real>(path: &Path) -> Result<(Code<T>, usize)> {
    let mut archive = Npz::open(path)?;
    let mut open = |name: &str| {
        let found = archive.names();
        let array = archive.array(name);
        array.with_context(|| format!("array `{name}` of a sparse code (the file holds {})", found.join(", ")))
    };
    let (filter, position) = (open("filter")?, open("position")?);
    let (value, shape) = (open("value")?, open("shape")?);

    let shape = integers("shape", &shape)?;
    let rank = shape.len().saturating_sub(1);
    let (&n_filters, axes) = shape.split_first().context("`shape` is empty; expected (filters, spatial axes)")?;
    ensure!((1..=3).contains(&rank), "`shape` is {}; expected (filters, one to three axes)", show_shape(&shape));
    let most = u32::MAX as usize;
    let pixels = axes.iter().try_fold(1usize, |n, &len| n.checked_mul(len)).filter(|&n| n <= most);
    let pixels = pixels.filter(|&n| n > 0 && (1..=most).contains(&n_filters));
    pixels.with_context(|| format!("`shape` is {}; expected 1 to 2^32 filters and positions", show_shape(&shape)))?;

    let n = filter.shape().first().copied().unwrap_or_default();
    let expect = |name: &str, array: &Array, wanted: &[usize]| {
        let (wanted, found) = (show_shape(wanted), show_shape(array.shape()));
        ensure!(wanted == found, "`{name}` has shape {found}; expected {wanted} as `filter` and `shape` say");
        Ok(())
    };
    expect("filter", &filter, &[n])?;
    expect("position", &position, &[n, rank])?;
    expect("value", &value, &[n])?;
    ensure!(!value.dtype().is_integer(), "`value` holds integers; expected f32 or f64");

    let (filter, position) = (integers("filter", &filter)?, integers("position", &position)?);
    let mut atoms = Vec::with_capacity(n);
    for ((&k, place), v) in filter.iter().zip(position.chunks_exact(rank)).zip(value.values()?) {
        let inside = k < n_filters && place.iter().zip(axes).all(|(p, len)| p < len);
        let at = || format!("filter {k} at {} lies outside of `shape` {}", show_shape(place), show_shape(&shape));
        ensure!(inside, at());
        let flat = place.iter().zip(axes).fold(0, |flat, (p, len)| flat * len + p);
        atoms.push(Atom { filter: u32::try_from(k)?, position: u32::try_from(flat)?, value: T::of(v) });
    }
    let mut full = [1; 3];
    full[3 - rank..].copy_from_slice(axes);
    Ok((Code::new(n_filters, full, atoms)?, rank))
}

/// The values of an array of non-negative integers.
fn integers(name: &str, array: &Array) -> Result<Vec<usize>> {
    ensure!(array.dtype().is_integer(), "`{name}` holds fractions; expected integers");
    let values = array.values()?;
    ensure!(values.iter().all(|&v| v >= 0.0), "`{name}` holds negative numbers");
    Ok(values.into_iter().map(|v| v as usize).collect())
}
