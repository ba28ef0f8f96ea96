//! Numbers as bytes and back, for members of one byte order.

use crate::{Atom, Code, Error, Real, Result};
use bytemuck::Pod;

/// Appends numbers.
pub(crate) fn put<P: Pod>(bytes: &mut Vec<u8>, values: &[P]) {
    bytes.extend_from_slice(bytemuck::cast_slice(values));
}

/// Reads what [`put`] wrote, from the front.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// The next `n` numbers; bytes have no alignment, so they are copied.
    pub(crate) fn many<P: Pod>(&mut self, n: usize) -> Result<Vec<P>> {
        let bytes = self.bytes(n.saturating_mul(size_of::<P>()))?;
        Ok(bytes.chunks_exact(size_of::<P>()).map(bytemuck::pod_read_unaligned).collect())
    }

    /// The next number, or array of numbers.
    pub(crate) fn one<P: Pod>(&mut self) -> Result<P> {
        Ok(bytemuck::pod_read_unaligned(self.bytes(size_of::<P>())?))
    }

    fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some((these, rest)) = self.0.split_at_checked(n) else {
            return Err(Error::invalid("message of another member", format!("{n} more bytes"), self.0.len()));
        };
        self.0 = rest;
        Ok(these)
    }

    /// Reads what [`put_code`] wrote.
    pub(crate) fn code<T: Real>(&mut self) -> Result<Code<T>> {
        let [n_filters, depth, height, width, n] = self.one::<[u64; 5]>()?.map(|n| n as usize);
        let atoms = (0..n).map(|_| {
            let [filter, position] = self.one()?;
            Ok(Atom { filter, position, value: self.one()? })
        });
        Code::new(n_filters, [depth, height, width], atoms.collect::<Result<_>>()?)
    }

    /// The next number, as a count.
    pub(crate) fn count(&mut self) -> Result<usize> {
        Ok(self.one::<u64>()? as usize)
    }
}

/// Writes a count.
pub(crate) fn put_count(bytes: &mut Vec<u8>, count: usize) {
    put(bytes, &[count as u64]);
}

/// Writes a code.
pub(crate) fn put_code<T: Real>(bytes: &mut Vec<u8>, code: &Code<T>) {
    let [depth, height, width] = code.shape();
    put(bytes, &[code.n_filters(), depth, height, width, code.nonzeros()].map(|n| n as u64));
    for atom in code.atoms() {
        put(bytes, &[atom.filter, atom.position]);
        put(bytes, &[atom.value]);
    }
}
