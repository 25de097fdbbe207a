//! Values written to safetensors, for comparison by any other tool: inputs by name, outputs by position.

use crate::engine::Value;
use crate::native::{Result, Tensor};
use passnet_graph::DType;
use safetensors::tensor::{Dtype, View};
use std::borrow::Cow;
use std::path::Path;

/// All tensors of a graph's outputs in order; numbers become 0-d tensors.
pub fn output_tensors(outputs: &[Value]) -> Result<Vec<Tensor>> {
    fn collect(value: &Value, into: &mut Vec<Tensor>) -> Result<()> {
        match value {
            Value::Tensor(tensor) => into.push(tensor.clone()),
            Value::Number(number) => into.push(Tensor::scalar(*number, number.dtype())?),
            Value::Sequence(items) => items.iter().try_for_each(|item| collect(item, into))?,
            _ => {}
        }
        Ok(())
    }
    let mut tensors = Vec::new();
    outputs.iter().try_for_each(|output| collect(output, &mut tensors))?;
    Ok(tensors)
}

/// What safetensors calls an element type; it has no complex128.
pub fn stored_dtype(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::UInt8 => Dtype::U8,
        DType::Int8 => Dtype::I8,
        DType::Int16 => Dtype::I16,
        DType::Int32 => Dtype::I32,
        DType::Int64 => Dtype::I64,
        DType::Float16 => Dtype::F16,
        DType::BFloat16 => Dtype::BF16,
        DType::Float32 => Dtype::F32,
        DType::Float64 => Dtype::F64,
        DType::Complex64 => Dtype::C64,
        DType::Complex128 => return None,
    })
}

/// One tensor as safetensors wants it. The format has no complex128: such a tensor is written as pairs of reals.
#[derive(Debug)]
struct Entry {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Entry {
    fn new(tensor: &Tensor) -> Result<Self> {
        let tensor = match tensor.dtype() {
            DType::Complex128 => tensor.view_as_real()?,
            _ => tensor.clone(),
        };
        let dtype = stored_dtype(tensor.dtype()).unwrap_or(Dtype::F64);
        Ok(Entry { dtype, shape: tensor.shape().to_vec(), bytes: tensor.to_bytes()? })
    }
}

impl View for Entry {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// Writes `input.<name>` and `output.<index>`.
pub fn write(path: &Path, inputs: &[(&str, Tensor)], outputs: &[Tensor]) -> std::io::Result<()> {
    let failed = |error: &dyn std::fmt::Display| std::io::Error::other(error.to_string());
    let mut entries = Vec::with_capacity(inputs.len() + outputs.len());
    for (name, tensor) in inputs {
        entries.push((format!("input.{name}"), Entry::new(tensor).map_err(|e| failed(&e))?));
    }
    for (index, tensor) in outputs.iter().enumerate() {
        entries.push((format!("output.{index}"), Entry::new(tensor).map_err(|e| failed(&e))?));
    }
    safetensors::serialize_to_file(entries, None, path).map_err(|error| failed(&error))
}
