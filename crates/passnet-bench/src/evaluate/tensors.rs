//! Engine values as the comparison wants them.

use crate::verify::{TensorData, TensorView};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use passnet_engine::Value;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::tensor::{Complex, Truth};
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;
use std::ops::Range;

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

impl Flat {
    pub(super) fn of(tensor: &Tensor) -> Result<Flat> {
        let elements = match tensor.dtype() {
            DType::Bool => {
                Elements::Bool(tensor.to_elements::<Truth>()?.iter().map(|t| t.0 != 0).collect())
            }
            DType::UInt8 => Elements::U8(tensor.to_elements()?),
            DType::Int8 => Elements::I8(tensor.to_elements()?),
            DType::Int16 => Elements::I16(tensor.to_elements()?),
            DType::Int32 => Elements::I32(tensor.to_elements()?),
            DType::Int64 => Elements::I64(tensor.to_elements()?),
            DType::Float16 => Elements::F16(tensor.to_elements()?),
            DType::BFloat16 => Elements::BF16(tensor.to_elements()?),
            DType::Float32 => Elements::F32(tensor.to_elements()?),
            DType::Float64 => Elements::F64(tensor.to_elements()?),
            DType::Complex64 => Elements::C64(pairs(tensor.to_elements()?)),
            DType::Complex128 => Elements::C128(pairs(tensor.to_elements()?)),
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

    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether its elements are floats.
    pub(super) fn is_real(&self) -> bool {
        self.dtype().is_float()
    }

    /// Some float elements as float64; other types have none.
    pub(super) fn reals(&self, range: Range<usize>) -> Vec<f64> {
        let mut reals = vec![0.0; range.len()];
        match &self.elements {
            Elements::F16(data) => data[range].convert_to_f64_slice(&mut reals),
            Elements::BF16(data) => data[range].convert_to_f64_slice(&mut reals),
            Elements::F32(data) => {
                reals.iter_mut().zip(&data[range]).for_each(|(real, x)| *real = f64::from(*x));
            }
            Elements::F64(data) => reals.copy_from_slice(&data[range]),
            _ => reals.clear(),
        }
        reals
    }
}

pub(super) fn views(flats: &[Flat]) -> Vec<TensorView<'_>> {
    flats.iter().map(Flat::view).collect()
}

fn pairs<T>(values: Vec<Complex<T>>) -> Vec<[T; 2]> {
    values.into_iter().map(|value| [value.re, value.im]).collect()
}
