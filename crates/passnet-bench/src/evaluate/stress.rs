//! Inputs that ordinary draws never give: very large, very small, of mixed size, zeros of both signs, denormals,
//! infinities, and the same values at other places in memory.
//!
//! Integers and booleans stay as they were drawn: they index and select, and other values would be illegal.

use passnet_engine::Value;
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;

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

/// Of mixed magnitudes, in turn.
const SCALES: [f32; 7] = [1.0, 1e-3, 10.0, 1e-2, 30.0, 1e-1, 3.0];

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

    /// The inputs with their values changed; those that stay are shared.
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
            _ if !tensor.dtype().is_float() || tensor.ndim() == 0 => Ok(tensor.clone()),
            _ => self.changed(tensor),
        }
    }

    fn changed(self, tensor: &Tensor) -> Result<Tensor> {
        // A multiple of the periods below that stays in a cache.
        const PIECE: usize = SCALES.len() * 997 * 2;
        match tensor.dtype() {
            DType::Float64 => tensor.changed(PIECE, |piece| self.change::<f64>(piece, 1e4, 1e-310)),
            DType::Float16 => tensor.changed(PIECE, |piece| self.change::<f32>(piece, 30.0, 1e-7)),
            _ => tensor.changed(PIECE, |piece| self.change::<f32>(piece, 1e4, 1e-40)),
        }
    }

    /// Replaces every value of a piece.
    fn change<T: Real>(self, piece: &mut [T], large: T, denormal: T) {
        match self {
            Stress::Large => piece.iter_mut().for_each(|value| *value = *value * large),
            Stress::Tiny => {
                let tiny = T::from_f32(1e-3);
                piece.iter_mut().for_each(|value| *value = *value * tiny);
            }
            Stress::Mixed => {
                // Repeated, for whole vectors.
                let scales: [T; 16 * SCALES.len()] =
                    std::array::from_fn(|index| T::from_f32(SCALES[index % SCALES.len()]));
                for values in piece.chunks_mut(scales.len()) {
                    let pairs = values.iter_mut().zip(&scales);
                    pairs.for_each(|(value, scale)| *value = *value * *scale);
                }
            }
            Stress::Zeros => {
                let (pairs, last) = piece.as_chunks_mut::<2>();
                pairs.fill([0.0, -0.0].map(T::from_f32));
                last.fill(T::from_f32(0.0));
            }
            Stress::Denormal => {
                piece.iter_mut().for_each(|value| *value = denormal.copysign(*value));
            }
            // Few, and far apart: most rows stay finite.
            Stress::Infinite => {
                let infinity = T::from_f32(f32::INFINITY);
                let few = piece.iter_mut().skip(3).step_by(997);
                few.for_each(|value| *value = infinity.copysign(*value));
            }
            Stress::Misaligned | Stress::Transposed => {}
        }
    }
}

/// The floating-point types that values are changed in.
trait Real: Copy + Send + Sync + std::ops::Mul<Output = Self> {
    fn from_f32(value: f32) -> Self;
    fn copysign(self, sign: Self) -> Self;
}

impl Real for f32 {
    fn from_f32(value: f32) -> Self {
        value
    }

    fn copysign(self, sign: Self) -> Self {
        f32::copysign(self, sign)
    }
}

impl Real for f64 {
    fn from_f32(value: f32) -> Self {
        f64::from(value)
    }

    fn copysign(self, sign: Self) -> Self {
        f64::copysign(self, sign)
    }
}

fn shifted(tensor: &Tensor) -> Result<Tensor> {
    let dense = tensor.contiguous()?;
    let longer = Tensor::empty(&[dense.numel() + 1], dense.dtype())?;
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
