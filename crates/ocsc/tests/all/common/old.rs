//! Checkpoints in the form that they had before arrays had types of their own, made from new ones.

use super::sealed::Parts;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The numbers of a tensor, widened.
fn numbers(parts: &mut Parts, name: &str) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
    }
    let dtype = parts.header[name]["dtype"].as_str().unwrap().to_owned();
    let bytes = parts.tensor(name);
    match dtype.as_str() {
        "F32" => each(bytes, |b| f64::from(f32::from_le_bytes(b))),
        "F64" => each(bytes, f64::from_le_bytes),
        "U8" => each(bytes, |b| f64::from(u8::from_le_bytes(b))),
        "U32" => each(bytes, |b| f64::from(u32::from_le_bytes(b))),
        "U64" => each(bytes, |b| u64::from_le_bytes(b) as f64),
        other => panic!("no array is of {other}"),
    }
}

/// The same checkpoint in the old form: every array in the scalar of the run, f64 in halves and indices in 16-bit pieces; the
/// rest as JSON in `numbers`.
pub(crate) fn old_form(bytes: &[u8]) -> Vec<u8> {
    let mut parts = Parts::of(bytes);
    let tensors: Vec<String> =
        parts.header.as_object().unwrap().keys().filter(|n| *n != "__metadata__").cloned().collect();
    let scalar = match tensors.iter().any(|name| parts.header[name]["dtype"] == "F32") {
        true => "F32",
        false => "F64",
    };
    let mut scalars: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut arrays: BTreeMap<String, (Value, Vec<f64>)> = BTreeMap::new();
    for tensor in &tensors {
        let values = numbers(&mut parts, tensor);
        let name = tensor.strip_prefix("state.").unwrap_or(tensor);
        match name {
            "constant" | "weight" => {
                let bits = values[0].to_bits();
                scalars.insert(name.to_owned(), vec![(bits >> 32) as f64, f64::from(bits as u32)]);
            }
            _ if name == "rho" || parts.header[tensor]["dtype"] == "U64" => {
                scalars.insert(name.to_owned(), values);
            }
            "kept_filters" | "kept_positions" => {}
            "kept_values" => {
                let [filters, positions] =
                    ["filters", "positions"].map(|n| numbers(&mut parts, &format!("state.kept_{n}")));
                let halves = |n: f64| [f64::from(n as u32 >> 16), f64::from(n as u32 & 0xffff)];
                let atoms = filters.iter().zip(&positions).zip(&values);
                let atoms: Vec<f64> =
                    atoms.flat_map(|((f, p), v)| [halves(*f), halves(*p)].concat().into_iter().chain([*v])).collect();
                arrays.insert("state.kept_codes".to_owned(), (json!([atoms.len()]), atoms));
            }
            _ => {
                arrays.insert(tensor.clone(), (parts.header[tensor]["shape"].clone(), values));
            }
        }
    }
    let mut header = json!({"__metadata__": parts.header["__metadata__"].clone()});
    header["__metadata__"]["numbers"] = Value::String(serde_json::to_string(&scalars).unwrap());
    let mut data: Vec<u8> = Vec::new();
    for (name, (shape, values)) in arrays {
        let start = data.len();
        for v in values {
            if scalar == "F32" { data.extend((v as f32).to_le_bytes()) } else { data.extend(v.to_le_bytes()) }
        }
        header[name] = json!({"dtype": scalar, "shape": shape, "data_offsets": [start, data.len()]});
    }
    Parts { header, data }.sealed()
}
