//! Engine values as the comparison wants them.

use crate::verify::{TensorData, TensorView};
use half::{bf16, f16};
use passnet_engine::Value;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;

/// The elements of a tensor in row-major order, owned.
#[derive(Debug, Clone)]
pub(super) struct Flat {
    shape: Vec<usize>,
    elements: Elements,
}

#[derive(Debug, Clone)]
enum Elements {
    Bool(Vec<bool>),
    U8(Vec<u8>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    C64(Vec<[f32; 2]>),
    C128(Vec<[f64; 2]>),
}

fn words<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
}

impl Flat {
    pub(super) fn of(tensor: &Tensor) -> Result<Flat> {
        let bytes = tensor.to_bytes()?;
        let pairs = |values: Vec<f32>| values.as_chunks::<2>().0.to_vec();
        let elements = match tensor.dtype() {
            DType::Bool => Elements::Bool(bytes.iter().map(|byte| *byte != 0).collect()),
            DType::UInt8 => Elements::U8(bytes),
            DType::Int8 => Elements::I8(words(&bytes, i8::from_le_bytes)),
            DType::Int16 => Elements::I16(words(&bytes, i16::from_le_bytes)),
            DType::Int32 => Elements::I32(words(&bytes, i32::from_le_bytes)),
            DType::Int64 => Elements::I64(words(&bytes, i64::from_le_bytes)),
            DType::Float16 => Elements::F16(words(&bytes, f16::from_le_bytes)),
            DType::BFloat16 => Elements::BF16(words(&bytes, bf16::from_le_bytes)),
            DType::Float32 => Elements::F32(words(&bytes, f32::from_le_bytes)),
            DType::Float64 => Elements::F64(words(&bytes, f64::from_le_bytes)),
            DType::Complex64 => Elements::C64(pairs(words(&bytes, f32::from_le_bytes))),
            DType::Complex128 => {
                let values = words(&bytes, f64::from_le_bytes);
                Elements::C128(values.as_chunks::<2>().0.to_vec())
            }
        };
        Ok(Flat { shape: tensor.shape().to_vec(), elements })
    }

    /// Every tensor of a graph's outputs.
    pub(super) fn outputs(values: &[Value]) -> Result<Vec<Flat>> {
        output_tensors(values)?.iter().map(Flat::of).collect()
    }

    pub(super) fn view(&self) -> TensorView<'_> {
        let data = match &self.elements {
            Elements::Bool(data) => TensorData::Bool(data),
            Elements::U8(data) => TensorData::U8(data),
            Elements::I8(data) => TensorData::I8(data),
            Elements::I16(data) => TensorData::I16(data),
            Elements::I32(data) => TensorData::I32(data),
            Elements::I64(data) => TensorData::I64(data),
            Elements::F16(data) => TensorData::F16(data),
            Elements::BF16(data) => TensorData::BF16(data),
            Elements::F32(data) => TensorData::F32(data),
            Elements::F64(data) => TensorData::F64(data),
            Elements::C64(data) => TensorData::C64(data),
            Elements::C128(data) => TensorData::C128(data),
        };
        TensorView { shape: &self.shape, data }
    }

    pub(super) fn dtype(&self) -> DType {
        self.view().data.dtype()
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Float elements as float64; `None` for other types.
    pub(super) fn reals(&self) -> Option<Vec<f64>> {
        Some(match &self.elements {
            Elements::F16(data) => data.iter().map(|x| x.to_f64()).collect(),
            Elements::BF16(data) => data.iter().map(|x| x.to_f64()).collect(),
            Elements::F32(data) => data.iter().map(|x| f64::from(*x)).collect(),
            Elements::F64(data) => data.clone(),
            _ => return None,
        })
    }
}

pub(super) fn views(flats: &[Flat]) -> Vec<TensorView<'_>> {
    flats.iter().map(Flat::view).collect()
}
