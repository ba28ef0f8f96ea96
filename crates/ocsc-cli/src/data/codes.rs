//! Sparse codes on disk, one `.npz` archive per sample.
//!
//! | array | type, shape | what |
//! |---|---|---|
//! | `filter` | i32, (n) | the filter of each non-zero |
//! | `position` | i32, (n, axes) | where its first corner lies, on the last one to three of depth, height, width |
//! | `value` | f32 or f64, (n) | the coefficient |
//! | `shape` | i64, (1 + axes) | the shape of the dense array: filters, then the spatial axes |
//! | `base`, `mixing` | i64, (R); f64, (filters, R) | where the sample has filters of its own, as with the method scsc: how they are made of the model's |
//!
//! Filter k of such a sample is the sum over r of `mixing[k, r]` times filter `base[r]` of the model, rounded to the type of `value`, and
//! scaled to norm 1 if its norm is above. The filters themselves would take (values of a filter) / R times the room.
//!
//! and what [`Facts`] says of it, each an array or a text of its own. Reading checks everything: the file may be anyone's.

use super::array::{Array, Dtype};
use super::axes::show_shape;
use super::code_facts::Facts;
use super::guard::guarded;
use super::npz::{self, Npz};
use super::{npy, write};
use crate::console::told;
use crate::memory::Limit;
use anyhow::{Context, Result, anyhow, ensure};
use ocsc::replace::write_file;
use ocsc::{Atom, Code, Dictionary, Mixing, Real};
use std::io::Cursor;
use std::path::Path;

/// Writes a code whose samples have `rank` spatial axes, replacing the file as a whole; `mixing` says how the sample's own filters are
/// made of the model's, where it has some.
pub(crate) fn write_code<T: Real>(
    path: &Path,
    code: &Code<T>,
    mixing: Option<&Mixing>,
    rank: usize,
    facts: &Facts,
) -> Result<()> {
    write_checked(path, code, mixing, rank, facts).map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

fn write_checked<T: Real>(
    path: &Path,
    code: &Code<T>,
    mixing: Option<&Mixing>,
    rank: usize,
    facts: &Facts,
) -> Result<()> {
    ensure!((1..=3).contains(&rank), "a code has one to three spatial axes, not {rank}");
    let shape = code.shape();
    let (hidden, axes) = shape.split_at(3 - rank);
    ensure!(hidden.iter().all(|&n| n == 1), "a code of shape {} has more than {rank} axes", show_shape(&shape));
    let n = code.nonzeros();
    type Write<'a, T> = &'a dyn Fn(&Atom<T>, &mut Vec<u8>) -> Result<()>;
    let column = |(name, descr, shape, bytes, write): (&'static str, &str, &[usize], usize, Write<'_, T>)| {
        let mut npy = npy::begin(descr, shape, n * bytes);
        code.atoms().iter().try_for_each(|atom| write(atom, &mut npy))?;
        Ok((name, npy))
    };
    let filter = |atom: &Atom<T>, bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(&i32::try_from(atom.filter)?.to_le_bytes());
        Ok(())
    };
    let position = |atom: &Atom<T>, bytes: &mut Vec<u8>| {
        let mut place = [0; 3];
        let mut rest = atom.position as usize;
        for (p, len) in place.iter_mut().zip(shape).rev() {
            *p = rest % len;
            rest /= len;
        }
        for &p in &place[3 - rank..] {
            bytes.extend_from_slice(&i32::try_from(p)?.to_le_bytes());
        }
        Ok(())
    };
    let value = |atom: &Atom<T>, bytes: &mut Vec<u8>| {
        atom.value.write_le(bytes);
        Ok(())
    };
    let dense: Vec<u8> = [&[code.n_filters()], axes].concat().iter().flat_map(|&n| (n as i64).to_le_bytes()).collect();
    let columns: [(_, _, &[usize], _, Write<'_, T>); 3] = [
        ("filter", "<i4", &[n], 4, &filter),
        ("position", "<i4", &[n, rank], 4 * rank, &position),
        ("value", write::descr::<T>(), &[n], size_of::<T>(), &value),
    ];
    let mut arrays = vec![("shape", npy::encode("<i8", &[rank + 1], &dense))];
    if let Some(mixing) = mixing {
        let (base, weights) = (mixing.base(), mixing.weights());
        let numbers: Vec<u8> = base.iter().flat_map(|b| (*b as i64).to_le_bytes()).collect();
        arrays.push(("base", npy::encode("<i8", &[base.len()], &numbers)));
        let numbers: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
        arrays.push(("mixing", npy::encode("<f8", &[weights.len() / base.len(), base.len()], &numbers)));
    }
    arrays.extend(facts.arrays());
    arrays.push(("sha256", npy::encode_text(&facts.checksum(code, mixing))));
    // In memory: the crate prints a line of its own where it cannot write.
    let mut packed = Cursor::new(Vec::new());
    npz::write(&mut packed, columns.into_iter().map(column).chain(arrays.into_iter().map(Ok)))?;
    Ok(write_file(path, packed.into_inner())?)
}

/// Whether a file is a code, by the names of its arrays.
pub(crate) fn is_code(path: &Path) -> bool {
    let names = guarded(|| Ok(Npz::open(path, Limit::default())?.names()));
    names.is_ok_and(|names| ["filter", "position", "value", "shape"].iter().all(|name| names.iter().any(|n| n == name)))
}

/// Reads what a file says of its code; nothing of what files from before, or from elsewhere, do not say.
pub(crate) fn read_facts(path: &Path) -> Result<Facts> {
    guarded(|| Facts::read(&mut Npz::open(path, Limit::default())?))
        .map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

/// Whether the values of a code are of single precision.
pub(crate) fn is_single(path: &Path) -> Result<bool> {
    let read = || Ok(Npz::open(path, Limit::default())?.array("value")?.dtype() == Dtype::F32);
    guarded(read).map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

/// Reads how the sample's own filters are made of the model's, where it has some.
pub(crate) fn read_mixing(path: &Path) -> Result<Option<Mixing>> {
    let limit = Limit::default();
    let read = || {
        let mut archive = Npz::open(path, limit)?;
        if !archive.names().iter().any(|name| name == "mixing") {
            return Ok(None);
        }
        let (base, weights) = (archive.array("base")?, archive.array("mixing")?);
        let fits = matches!((base.shape(), weights.shape()), ([r], [_, columns]) if r == columns);
        let found = format!("{} and {}", show_shape(base.shape()), show_shape(weights.shape()));
        ensure!(fits, "`base` and `mixing` have shapes {found}; expected (R) and (filters, R)");
        Ok(Some(Mixing::new(integers("base", &base, limit)?, weights.values(limit)?)?))
    };
    guarded(read).map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

/// Reads the filters that a code belongs to, if they are the sample's own: in f64, as the coder rounded them.
pub(crate) fn read_filters(path: &Path, dictionary: &Dictionary<f64>) -> Result<Option<Dictionary<f64>>> {
    let Some(mixing) = read_mixing(path)? else { return Ok(None) };
    let filters = match is_single(path)? {
        true => mixing.filters(&dictionary.cast::<f32>()).map(|filters| filters.cast()),
        false => mixing.filters(dictionary),
    };
    filters.map(Some).with_context(|| path.display().to_string())
}

/// Reads the checksum that a file had when it was written.
pub(crate) fn read_checksum(path: &Path) -> Result<Option<String>> {
    guarded(|| Npz::open(path, Limit::default())?.text("sha256", 64))
        .map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

/// Reads a code and the number of its spatial axes.
pub(crate) fn read_code<T: Real>(path: &Path) -> Result<(Code<T>, usize)> {
    guarded(|| read_checked(path)).map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

fn read_checked<T: Real>(path: &Path) -> Result<(Code<T>, usize)> {
    let limit = Limit::default();
    let mut archive = Npz::open(path, limit)?;
    let mut open = |name: &str| {
        let found = archive.names();
        let array = archive.array(name);
        array.with_context(|| format!("array `{name}` of a sparse code (the file holds {})", found.join(", ")))
    };
    let filter = open("filter")?;
    let shape = integers("shape", &open("shape")?, limit)?;
    let rank = shape.len().saturating_sub(1);
    let (&n_filters, axes) = shape.split_first().context("`shape` is empty; expected (filters, spatial axes)")?;
    ensure!((1..=3).contains(&rank), "`shape` is {}; expected (filters, one to three axes)", show_shape(&shape));
    let most = u32::MAX as usize;
    let pixels = axes.iter().try_fold(1usize, |n, &len| n.checked_mul(len)).filter(|&n| n <= most);
    let pixels = pixels.filter(|&n| n > 0 && (1..=most).contains(&n_filters));
    pixels.with_context(|| format!("`shape` is {}; expected 1 to 2^32 filters and positions", show_shape(&shape)))?;

    let expect = |name: &str, array: &Array, wanted: &[usize]| {
        let (wanted, found) = (show_shape(wanted), show_shape(array.shape()));
        ensure!(wanted == found, "`{name}` has shape {found}; expected {wanted} as `filter` and `shape` say");
        Ok(())
    };
    let n = filter.shape().first().copied().unwrap_or_default();
    expect("filter", &filter, &[n])?;
    // Each array is let go before the next is unpacked: a code of millions of atoms is held about once.
    let filter: Vec<u32> =
        integers("filter", &filter, limit)?.into_iter().map(u32::try_from).collect::<Result<_, _>>()?;
    let position = open("position")?;
    expect("position", &position, &[n, rank])?;
    let position = integers("position", &position, limit)?;
    let mut flat = Vec::with_capacity(n);
    for (&k, place) in filter.iter().zip(position.chunks_exact(rank)) {
        let inside = (k as usize) < n_filters && place.iter().zip(axes).all(|(p, len)| p < len);
        let at = || format!("filter {k} at {} lies outside of `shape` {}", show_shape(place), show_shape(&shape));
        ensure!(inside, at());
        flat.push(u32::try_from(place.iter().zip(axes).fold(0, |flat, (p, len)| flat * len + p))?);
    }
    drop(position);
    let value = open("value")?;
    expect("value", &value, &[n])?;
    ensure!(!value.dtype().is_integer(), "`value` holds integers; expected f32 or f64");
    let atom = |((filter, position), v)| Atom { filter, position, value: T::of(v) };
    let atoms: Vec<Atom<T>> = filter.into_iter().zip(flat).zip(value.values(limit)?).map(atom).collect();
    let mut full = [1; 3];
    full[3 - rank..].copy_from_slice(axes);
    Ok((Code::new(n_filters, full, atoms)?, rank))
}

/// The values of an array of non-negative integers.
pub(super) fn integers(name: &str, array: &Array, limit: Limit) -> Result<Vec<usize>> {
    ensure!(array.dtype().is_integer(), "`{name}` holds fractions; expected integers");
    let values = array.values(limit)?;
    ensure!(values.iter().all(|&v| v >= 0.0), "`{name}` holds negative numbers");
    Ok(values.into_iter().map(|v| v as usize).collect())
}
