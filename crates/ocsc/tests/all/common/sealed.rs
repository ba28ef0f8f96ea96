//! Model files taken apart and put together again, with a checksum that holds, by code of its own.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A model file's header and its tensors' bytes.
pub(crate) struct Parts {
    pub(crate) header: Value,
    pub(crate) data: Vec<u8>,
}

impl Parts {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        Parts { header: serde_json::from_slice(&bytes[8..end]).unwrap(), data: bytes[end..].to_vec() }
    }

    /// A text of the metadata.
    pub(crate) fn text(&mut self, name: &str) -> &mut Value {
        &mut self.header["__metadata__"][name]
    }

    /// Changes JSON that is a text of the metadata.
    pub(crate) fn edit(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_str(self.text(name).as_str().unwrap()).unwrap();
        change(&mut value);
        *self.text(name) = Value::String(value.to_string());
    }

    /// The bytes of a tensor.
    pub(crate) fn tensor(&mut self, name: &str) -> &mut [u8] {
        let offsets = &self.header[name]["data_offsets"];
        let [start, end] = [0, 1].map(|i| offsets[i].as_u64().unwrap() as usize);
        &mut self.data[start..end]
    }

    /// The file as it was written before there were checksums.
    pub(crate) fn unsealed(mut self) -> Vec<u8> {
        let metadata = self.header["__metadata__"].as_object_mut().unwrap();
        assert!(metadata.remove("sha256").is_some() && metadata.remove("checksum").is_some());
        self.bytes()
    }

    /// The file with the checksum of its bytes.
    pub(crate) fn sealed(mut self) -> Vec<u8> {
        *self.text("sha256") = Value::String("0".repeat(64));
        sealed(self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        let header = self.header.to_string();
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &self.data].concat()
    }
}

/// The same file with a checksum that holds, whatever else is wrong with it; as it is if there is no place for one.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let key = b"\"sha256\":\"";
    let Some(at) = bytes.windows(key.len()).position(|w| w == key).map(|at| at + key.len()) else { return bytes };
    if at + 64 > bytes.len() {
        return bytes;
    }
    bytes[at..at + 64].fill(b'0');
    let digits: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    bytes[at..at + 64].copy_from_slice(digits.as_bytes());
    bytes
}
