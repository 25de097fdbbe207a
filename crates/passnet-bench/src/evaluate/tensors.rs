//! Engine values as the comparison wants them.

use crate::compare::{TensorData, TensorView};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use passnet_engine::native::tensor::{Complex, Truth, Values};
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;

/// The elements of a tensor in row-major order, where they lie.
#[derive(Debug)]
pub(super) struct Flat<'a> {
    shape: &'a [usize],
    elements: Elements<'a>,
}

#[derive(Debug)]
enum Elements<'a> {
    Bool(Vec<bool>),
    U8(Values<'a, u8>),
    I8(Values<'a, i8>),
    I16(Values<'a, i16>),
    I32(Values<'a, i32>),
    I64(Values<'a, i64>),
    F16(Values<'a, f16>),
    BF16(Values<'a, bf16>),
    F32(Values<'a, f32>),
    F64(Values<'a, f64>),
    C64(Vec<[f32; 2]>),
    C128(Vec<[f64; 2]>),
}

impl<'a> Flat<'a> {
    pub(super) fn of(tensor: &'a Tensor) -> Result<Flat<'a>> {
        let elements = match tensor.dtype() {
            DType::Bool => {
                Elements::Bool(tensor.elements::<Truth>()?.iter().map(|t| t.0 != 0).collect())
            }
            DType::UInt8 => Elements::U8(tensor.elements()?),
            DType::Int8 => Elements::I8(tensor.elements()?),
            DType::Int16 => Elements::I16(tensor.elements()?),
            DType::Int32 => Elements::I32(tensor.elements()?),
            DType::Int64 => Elements::I64(tensor.elements()?),
            DType::Float16 => Elements::F16(tensor.elements()?),
            DType::BFloat16 => Elements::BF16(tensor.elements()?),
            DType::Float32 => Elements::F32(tensor.elements()?),
            DType::Float64 => Elements::F64(tensor.elements()?),
            DType::Complex64 => Elements::C64(pairs(&tensor.elements()?)),
            DType::Complex128 => Elements::C128(pairs(&tensor.elements()?)),
        };
        Ok(Flat { shape: tensor.shape(), elements })
    }

    pub(super) fn all(tensors: &'a [Tensor]) -> Result<Vec<Flat<'a>>> {
        tensors.iter().map(Flat::of).collect()
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
        TensorView { shape: self.shape, data }
    }

    pub(super) fn dtype(&self) -> DType {
        self.view().data.dtype()
    }

    pub(super) fn shape(&self) -> &[usize] {
        self.shape
    }

    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether its elements are floats.
    pub(super) fn is_real(&self) -> bool {
        self.dtype().is_float()
    }

    /// Writes elements from `start` on as float64; what is no float is no number.
    pub(super) fn write_reals(&self, start: usize, reals: &mut [f64]) {
        let range = start..start + reals.len();
        match &self.elements {
            Elements::F16(data) => data[range].convert_to_f64_slice(reals),
            Elements::BF16(data) => data[range].convert_to_f64_slice(reals),
            Elements::F32(data) => {
                reals.iter_mut().zip(&data[range]).for_each(|(real, x)| *real = f64::from(*x));
            }
            Elements::F64(data) => reals.copy_from_slice(&data[range]),
            _ => reals.fill(f64::NAN),
        }
    }
}

pub(super) fn views<'a>(flats: &'a [Flat<'_>]) -> Vec<TensorView<'a>> {
    flats.iter().map(Flat::view).collect()
}

fn pairs<T: Copy>(values: &[Complex<T>]) -> Vec<[T; 2]> {
    values.iter().map(|value| [value.re, value.im]).collect()
}
