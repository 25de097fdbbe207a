//! Golden tensors made by PyTorch (`python/goldens/`), and comparison with them.

// Each test binary uses a part of this.
#![allow(dead_code)]

use passnet_engine::native::Tensor;
use passnet_engine::native::tensor::{Dims, Region};
use passnet_graph::DType;
use serde_json::Value;

pub(crate) fn load(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn fnv1a(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn base64(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for c in text.bytes() {
        let digit = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

pub(crate) fn sizes(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as usize).collect()
}

pub(crate) fn dtype(value: &Value) -> DType {
    DType::from_name(value.as_str().unwrap()).unwrap()
}

/// The golden with its own memory layout.
pub(crate) fn tensor(value: &Value) -> Tensor {
    let (shape, dtype) = (sizes(&value["shape"]), dtype(&value["dtype"]));
    let dense =
        Tensor::from_bytes(&base64(value["data"].as_str().unwrap()), &shape, dtype).unwrap();
    let strides: Dims = sizes(&value["strides"]).into_iter().collect();
    if strides.as_slice() == dense.strides() || dense.numel() == 0 {
        return dense;
    }
    let extent: usize =
        1 + shape.iter().zip(&strides).map(|(size, stride)| (size - 1) * stride).sum::<usize>();
    let storage = Tensor::zeros(&[extent], dtype).unwrap();
    let region = Region { shape: shape.into_iter().collect(), strides, offset: 0 };
    let view = storage.as_strided(region).unwrap();
    view.copy_from(&dense).unwrap();
    view
}

/// Bit for bit, NaN patterns included.
pub(crate) fn assert_same(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!(got.dtype(), want.dtype(), "{what}: dtype");
    assert_eq!(got.shape(), want.shape(), "{what}: shape");
    if got.to_bytes().unwrap() != want.to_bytes().unwrap() {
        let (g, w) = (got.to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
        for (i, (g, w)) in g.iter().zip(&w).enumerate() {
            assert_eq!(g.to_bits(), w.to_bits(), "{what}: element {i}: {g} is not {w}");
        }
        panic!("{what}: bytes differ");
    }
}

/// Type, shape, memory order of dimensions longer than one, and values to within a few roundings of the type.
pub(crate) fn assert_close(got: &Tensor, want: &Tensor, strides: bool) -> Result<(), String> {
    if got.dtype() != want.dtype() || got.shape() != want.shape() {
        return Err(format!("{got:?} instead of {want:?}"));
    }
    let visible = |t: &Tensor| -> Vec<usize> {
        let long = t.shape().iter().zip(t.strides()).filter(|(size, _)| **size > 1);
        long.map(|(_, stride)| *stride).collect()
    };
    if strides && got.numel() > 0 && visible(got) != visible(want) {
        return Err(format!("laid out as {got:?} instead of {want:?}"));
    }
    let (relative, absolute) = match got.dtype() {
        DType::Float64 => (1e-12, 1e-13),
        DType::Float32 => (2e-6, 2e-6),
        DType::Float16 => (1.0 / 1024.0, 1e-5),
        DType::BFloat16 => (1.0 / 128.0, 1e-5),
        _ => (0.0, 0.0),
    };
    let (g, w) = (got.to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
    for (i, (g, w)) in g.iter().zip(&w).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan());
        if !same && ((g - w).abs() > absolute + relative * w.abs() || !(g - w).is_finite()) {
            return Err(format!("element {i} is {g} instead of {w}"));
        }
    }
    Ok(())
}
