//! Inputs that ordinary draws never give: very large, very small, of mixed size, zeros of both signs, denormals,
//! infinities, and the same values at other places in memory.
//!
//! Integers and booleans stay as they were drawn: they index and select, and other values would be illegal.

use passnet_engine::Value;
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;
use rayon::prelude::*;

/// A way to change inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stress {
    Large,
    Tiny,
    Mixed,
    Zeros,
    Denormal,
    Infinite,
    /// Same values, each tensor starting one element into its memory.
    Misaligned,
    /// Same values, the last two dimensions stored in the other order.
    Transposed,
}

impl Stress {
    pub(super) const ALL: [Stress; 8] = [
        Stress::Large,
        Stress::Tiny,
        Stress::Mixed,
        Stress::Zeros,
        Stress::Denormal,
        Stress::Infinite,
        Stress::Misaligned,
        Stress::Transposed,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Stress::Large => "large values",
            Stress::Tiny => "tiny values",
            Stress::Mixed => "mixed magnitudes",
            Stress::Zeros => "zeros of both signs",
            Stress::Denormal => "denormal values",
            Stress::Infinite => "infinities",
            Stress::Misaligned => "misaligned memory",
            Stress::Transposed => "non-contiguous memory",
        }
    }

    /// Whether a failure is only reported. The graphs of a task say how their inputs lie in memory, so a pass that
    /// is right for that layout is right; that it would be wrong elsewhere is good to know.
    pub(super) fn is_advice(self) -> bool {
        self == Stress::Transposed
    }

    /// Whether values change, so that only the float64 yardstick can judge fairly.
    pub(super) fn changes_values(self) -> bool {
        !matches!(self, Stress::Misaligned | Stress::Transposed)
    }

    /// Fresh tensors with the changed values.
    pub(super) fn apply(self, inputs: &[Value]) -> Result<Vec<Value>> {
        inputs
            .iter()
            .map(|input| match input {
                Value::Tensor(tensor) => self.tensor(tensor).map(Value::Tensor),
                other => Ok(other.clone()),
            })
            .collect()
    }

    fn tensor(self, tensor: &Tensor) -> Result<Tensor> {
        match self {
            Stress::Misaligned => shifted(tensor),
            Stress::Transposed => transposed(tensor),
            _ if !tensor.dtype().is_float() || tensor.ndim() == 0 => tensor.copy(),
            _ => self.changed(tensor),
        }
    }

    fn changed(self, tensor: &Tensor) -> Result<Tensor> {
        let (wide, large, denormal) = match tensor.dtype() {
            DType::Float16 => (DType::Float32, 30.0, 1e-7),
            DType::Float64 => (DType::Float64, 1e4, 1e-310),
            _ => (DType::Float32, 1e4, 1e-40),
        };
        if wide == DType::Float64 {
            let mut values = tensor.to_vec::<f64>()?;
            self.change(&mut values, |value| self.value(value.0, *value.1, large, denormal));
            return Tensor::from_slice(&values, tensor.shape());
        }
        let mut values = tensor.to_vec::<f32>()?;
        self.change(&mut values, |value| {
            self.value(value.0, f64::from(*value.1), large, denormal) as f32
        });
        Tensor::from_slice(&values, tensor.shape())?.to_dtype(tensor.dtype())
    }

    /// Replaces every value by what `of` makes of its place and itself, on several threads.
    fn change<T: Copy + Send + Sync>(self, values: &mut [T], of: impl Fn((usize, &T)) -> T + Sync) {
        const PIECE: usize = 1 << 14;
        values.par_chunks_mut(PIECE).enumerate().for_each(|(piece, values)| {
            for (index, value) in values.iter_mut().enumerate() {
                *value = of((piece * PIECE + index, value));
            }
        });
    }

    fn value(self, index: usize, value: f64, large: f64, denormal: f64) -> f64 {
        match self {
            Stress::Large => value * large,
            Stress::Tiny => value * 1e-3,
            Stress::Mixed => value * [1.0, 1e-3, 10.0, 1e-2, 30.0, 1e-1, 3.0][index % 7],
            Stress::Zeros if index.is_multiple_of(2) => 0.0,
            Stress::Zeros => -0.0,
            Stress::Denormal => denormal.copysign(value),
            // Few, and far apart: most rows stay finite.
            Stress::Infinite if index % 997 == 3 => f64::INFINITY.copysign(value),
            _ => value,
        }
    }
}

fn shifted(tensor: &Tensor) -> Result<Tensor> {
    let dense = tensor.contiguous()?;
    let longer = Tensor::zeros(&[dense.numel() + 1], dense.dtype())?;
    let sizes: Vec<i64> = dense.shape().iter().map(|size| *size as i64).collect();
    let room = longer.narrow(0, 1, dense.numel())?.view(&sizes)?;
    room.copy_from(&dense)?;
    Ok(room)
}

fn transposed(tensor: &Tensor) -> Result<Tensor> {
    if tensor.ndim() < 2 {
        return tensor.copy();
    }
    tensor.transpose(-2, -1)?.contiguous()?.transpose(-2, -1)
}
