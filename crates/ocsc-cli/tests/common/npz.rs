//! Archives of arrays as bytes: to look at all members of a code, and to change some.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

/// A member: numpy's header, and the bytes after it.
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) header: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// All members by name, without `.npy`.
pub(crate) fn members(path: &Path) -> BTreeMap<String, Member> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut members = BTreeMap::new();
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).unwrap();
        let name = file.name().strip_suffix(".npy").unwrap().to_owned();
        let mut header = Vec::new();
        file.read_to_end(&mut header).unwrap();
        let data = header.split_off(10 + usize::from(u16::from_le_bytes([header[8], header[9]])));
        members.insert(name, Member { header, data });
    }
    members
}

/// Writes an archive again, changed.
pub(crate) fn rewrite(path: &Path, change: impl FnOnce(&mut BTreeMap<String, Member>)) {
    let mut members = members(path);
    change(&mut members);
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, Member { header, data }) in members {
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&[header, data].concat()).unwrap();
    }
    archive.finish().unwrap();
}

/// The one text of a member of numpy's type `<U`.
pub(crate) fn text(member: &Member) -> String {
    let header = String::from_utf8_lossy(&member.header);
    assert!(header.contains("'descr': '<U") && header.contains("'shape': ()"), "{header}");
    let number = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
    member.data.chunks(4).map(|b| char::from_u32(number(b)).unwrap()).collect()
}
