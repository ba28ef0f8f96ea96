//! Files and codes that claim more than there is: refused before memory is taken.

use ocsc::settings::Boundary;
use ocsc::{Atom, Code, Dictionary, Error, Shape, checkpoint};
use std::path::Path;

#[test]
fn a_reconstruction_beyond_memory_is_refused() {
    // Two atoms in a plane of 2^32 pixels, with filters of a thousand channels: 69 TB.
    let shape = Shape { channels: 1000, depth: 1, height: 2, width: 2 };
    let dictionary = Dictionary::<f32>::random(4, shape, 2, 0).unwrap();
    let atom = |filter, position| Atom { filter, position, value: 1.0 };
    let code = Code::new(4, [1, 65535, 65535], vec![atom(0, 0), atom(3, 65535 * 65535 - 1)]).unwrap();
    for boundary in [Boundary::Circular, Boundary::Zero, Boundary::Free] {
        let error = code.reconstruct(&dictionary, boundary).unwrap_err();
        assert!(matches!(&error, Error::Memory { what, .. } if what.contains("65")), "{error}");
    }
    let small = Code::new(4, [1, 5, 5], vec![atom(0, 0), atom(3, 24)]).unwrap();
    assert_eq!(
        small.reconstruct(&dictionary, Boundary::Circular).unwrap().shape(),
        Shape { height: 5, width: 5, ..shape }
    );
}

#[test]
fn a_dense_code_beyond_memory_is_refused() {
    let atom = |filter, position| Atom { filter, position, value: 1.0f32 };
    // 69 PB, and more than can be counted.
    for n_filters in [4_000_000, u32::MAX as usize] {
        let code = Code::new(n_filters, [1, 65535, 65535], vec![atom(3, 65535 * 65535 - 1)]).unwrap();
        let error = code.to_dense().unwrap_err();
        let said = format!("dense codes of {n_filters} filters on 1x65535x65535");
        assert!(matches!(&error, Error::Memory { what, .. } if *what == said), "{error}");
    }
    let small = Code::new(2, [1, 2, 2], vec![atom(1, 3)]).unwrap();
    assert_eq!(small.to_dense().unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn headers_of_model_files_are_believed_up_to_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let refused = |bytes: &[u8], part: &str| {
        std::fs::write(&path, bytes).unwrap();
        let message = checkpoint::load::<f32>(&path).unwrap_err().to_string();
        assert!(message.contains("m.safetensors") && message.contains(part), "{message}");
    };
    refused(b"", "0 bytes in all");
    refused(b"1234567", "7 bytes in all");
    refused(&u64::MAX.to_le_bytes(), "18446744073709551615 bytes of header");
    refused(&[&9_u64.to_le_bytes()[..], b"{}"].concat(), "9 bytes of header, where 2 are possible");
    let claim = br#"{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}"#;
    refused(&[&(claim.len() as u64).to_le_bytes()[..], claim].concat(), "0 bytes of numbers");
}

#[test]
#[cfg(unix)]
fn devices_and_folders_are_no_models() {
    for (path, found) in [("/dev/zero", "a device"), ("/", "a folder")] {
        let message = checkpoint::load::<f32>(Path::new(path)).unwrap_err().to_string();
        assert!(message.contains(path) && message.contains(&format!("found {found}")), "{message}");
    }
}
