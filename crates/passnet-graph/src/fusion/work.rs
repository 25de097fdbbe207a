//! What an operation costs on the device: nothing, a loop over elements, a reduction, or a library call.

use crate::graph::{Arg, Call, Graph, NodeId};
use crate::infer::{Inference, Scalar, TensorType, Value};
use crate::ops::{Bound, Class, Op};

/// The iterations of a kernel: `outer` results, each folding `inner` elements (1 for a plain loop).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Space {
    pub outer: i64,
    pub inner: i64,
}

impl Space {
    pub const fn of(elements: i64) -> Self {
        Space { outer: elements, inner: 1 }
    }

    pub const fn total(self) -> i64 {
        self.outer.saturating_mul(self.inner)
    }

    pub const fn is_reduction(self) -> bool {
        self.inner != 1
    }

    /// Whether loops over both spaces can be one kernel: equal spaces, or a plain loop over what a
    /// reduction reads or over what it yields.
    pub fn fits(self, other: Space) -> bool {
        match (self.is_reduction(), other.is_reduction()) {
            (false, false) | (true, true) => self == other,
            (true, false) => other.outer == self.total() || other.outer == self.outer,
            (false, true) => other.fits(self),
        }
    }

    /// Whether a reduction has too few results to fill the device and is done in two steps. The limits are
    /// those of TorchInductor for a device of 132 multiprocessors.
    pub const fn is_split(self, innermost: bool) -> bool {
        const MULTIPROCESSORS: i64 = 132;
        const FULL_DEVICE: i64 = 32 * MULTIPROCESSORS * 2048;
        if innermost {
            self.outer < 2 * MULTIPROCESSORS && self.inner > 8192
        } else {
            self.inner > 128 && self.total() < FULL_DEVICE
        }
    }
}

/// How a loop reads its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The elements at the same place.
    Same,
    /// Elements at other places, each about once: a producer can be computed on the way.
    Elsewhere,
    /// Neighbourhoods: a producer is computed first.
    Window,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Work {
    /// Metadata only; the result is the first argument.
    Free,
    /// No device work and no tensor of interest.
    Host,
    Loop {
        elements: i64,
        reading: Reading,
        /// Scalar instructions per element, roughly.
        weight: u32,
    },
    /// A fold; `keeps` when the result has an element for each one read (softmax, norms, scans), `apart`
    /// when that last step is a kernel of its own.
    Fold {
        space: Space,
        innermost: bool,
        keeps: bool,
        apart: bool,
    },
    Convolution(Convolution),
    /// A call of a library that fuses with nothing.
    Library,
    /// A matrix product; operands whose leading dimensions do not merge are copied first.
    Product,
    /// Copies its target, then writes by index.
    Scatter {
        elements: i64,
    },
    /// A loop that draws random numbers.
    Random {
        elements: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Convolution {
    pub elements: i64,
    pub two_dimensional: bool,
    pub biased: bool,
    /// Whether the input has to change its layout, should channels come last.
    pub moves_input: bool,
    pub moves_weight: bool,
    /// Multiplications, and what channels last makes of them by experience.
    pub flops: f64,
    pub weighted_flops: f64,
}

/// The tensors of a value, the first one.
pub(super) fn first_tensor(value: &Value) -> Option<&TensorType> {
    match value {
        Value::Tensor(tensor) => Some(tensor),
        Value::Sequence(items) => items.iter().find_map(first_tensor),
        _ => None,
    }
}

pub(super) struct Classifier<'a> {
    pub graph: &'a Graph,
    pub types: &'a Inference,
}

impl Classifier<'_> {
    fn tensor(&self, arg: &Arg) -> Option<&TensorType> {
        let mut found = None;
        arg.for_each_node(&mut |id| {
            if found.is_none() {
                found = first_tensor(self.types.value(id));
            }
        });
        found
    }

    fn int(&self, arg: &Arg) -> Option<i64> {
        match arg {
            Arg::Node(id) => match self.types.value(*id) {
                Value::Scalar(Scalar::Int(Some(dim))) => Some(dim.size),
                _ => None,
            },
            other => other.as_int(),
        }
    }

    pub fn classify(&self, id: NodeId, call: &Call) -> Work {
        let result = self.types.value(id);
        let Ok(bound) = call.bind() else { return Work::Library };
        if matches!(bound.class(), Class::Scalar | Class::Effect) || bound.op == Op::Item {
            let passes = matches!(bound.op, Op::AddBatchDim | Op::RemoveBatchDim);
            return if passes { Work::Free } else { Work::Host };
        }
        let Some(output) = first_tensor(result) else {
            return match result {
                Value::Unknown(_) => Work::Library,
                _ => Work::Host,
            };
        };
        let input = call.args.first().and_then(|arg| self.tensor(arg));
        let elements = output.elements();
        let moved = |weight| Work::Loop { elements, reading: Reading::Elsewhere, weight };
        let plain = |weight| Work::Loop { elements, reading: Reading::Same, weight };
        match bound.op {
            // Elements of tuples are no work; reads by position are views; reads by tensor are gathers.
            Op::GetItem => match input {
                Some(input) if output.shares_memory_with(input) => Work::Free,
                _ if matches!(call.args.first(), Some(Arg::Node(id)) if self.types.value(*id).as_tensor().is_none()) => {
                    Work::Free
                }
                _ => moved(2),
            },
            Op::SetItem => plain(3),
            Op::Clone | Op::Copy | Op::Tril | Op::Triu | Op::Complex | Op::Polar => plain(2),
            Op::Dropout | Op::Dropout1d | Op::Dropout2d | Op::Dropout3d | Op::AlphaDropout => {
                if bound.is_random() {
                    Work::Random { elements }
                } else {
                    Work::Free
                }
            }
            Op::Scatter
            | Op::ScatterAdd
            | Op::ScatterReduce
            | Op::IndexAdd
            | Op::IndexPut
            | Op::IndexCopy
            | Op::MaxUnpool1d
            | Op::MaxUnpool2d
            | Op::MaxUnpool3d
            | Op::MaskedScatter => Work::Scatter { elements },
            Op::Nonzero
            | Op::MaskedSelect
            | Op::Bincount
            | Op::Unique
            | Op::UniqueConsecutive
            | Op::EmbeddingBag
            | Op::Cdist
            | Op::Median => Work::Library,
            Op::Linear
            | Op::Matmul
            | Op::Mm
            | Op::Bmm
            | Op::Mv
            | Op::Dot
            | Op::Addmm
            | Op::Addbmm
            | Op::Baddbmm
            | Op::Einsum
            | Op::Tensordot
            | Op::Bilinear => Work::Product,
            Op::Outer => moved(1),
            Op::CosineSimilarity => self.fold(&bound, input, output, false),
            Op::Conv1d
            | Op::Conv2d
            | Op::Conv3d
            | Op::ConvTranspose1d
            | Op::ConvTranspose2d
            | Op::ConvTranspose3d => self.convolution(&bound, output),
            Op::AdaptiveAvgPool1d | Op::AdaptiveAvgPool2d | Op::AdaptiveAvgPool3d => {
                let spatial = &output.shape[output.rank().saturating_sub(bound_rank(bound.op))..];
                if spatial.iter().all(|dim| dim.size == 1) {
                    self.fold(&bound, input, output, false)
                } else {
                    Work::Loop { elements, reading: Reading::Window, weight: 8 }
                }
            }
            Op::BatchNorm if !bound.flag("training") => plain(8),
            Op::GroupNorm => self.fold(&bound, input, output, true),
            Op::Glu | Op::LocalResponseNorm => moved(6),
            Op::Tensor | Op::ScalarTensor | Op::NewTensor => Work::Host,
            _ => match bound.class() {
                Class::View => match input {
                    Some(input)
                        if self.is_copy(&bound, input, output) && !self.is_attention(call) =>
                    {
                        plain(1)
                    }
                    _ => Work::Free,
                },
                Class::Pointwise => plain(instructions(bound.op)),
                Class::Reduction | Class::Scan | Class::Normalisation => {
                    self.fold(&bound, input, output, false)
                }
                Class::Movement | Class::Indexing | Class::Resampling => moved(3),
                Class::Pooling => Work::Loop { elements, reading: Reading::Window, weight: 8 },
                Class::Contraction | Class::Attention | Class::Transform => Work::Library,
                Class::Creation => plain(1),
                Class::Random => {
                    if matches!(bound.op, Op::Randperm | Op::Multinomial) {
                        Work::Library
                    } else {
                        Work::Random { elements }
                    }
                }
                Class::Scalar | Class::Effect => Work::Host,
            },
        }
    }

    /// A call of the view family that has to write: another dtype, or a shape the strides do not allow.
    fn is_copy(&self, bound: &Bound, input: &TensorType, output: &TensorType) -> bool {
        input.dtype != output.dtype
            && !matches!(bound.op, Op::Real | Op::Imag | Op::ViewAsReal | Op::ViewAsComplex)
            || (bound.op.alias() == crate::ops::Alias::MayView && !output.shares_memory_with(input))
    }

    /// Whether a view call looks at a result of attention, whose kernels put heads beside each other already.
    fn is_attention(&self, call: &Call) -> bool {
        let mut call = call;
        for _ in 0..4 {
            let source =
                call.args.first().and_then(Arg::as_node).and_then(|id| self.graph.call(id));
            match source {
                Some(source) if source.op() == Some(Op::ScaledDotProductAttention) => return true,
                Some(source) if source.op().is_some_and(|op| op.class() == Class::View) => {
                    call = source
                }
                _ => return false,
            }
        }
        false
    }

    fn fold(
        &self,
        bound: &Bound,
        input: Option<&TensorType>,
        output: &TensorType,
        apart: bool,
    ) -> Work {
        let Some(input) = input else { return Work::Library };
        let total = input.elements().max(1);
        let keeps = matches!(bound.class(), Class::Normalisation | Class::Scan);
        let (inner, innermost) = match bound.op {
            Op::GroupNorm => {
                let groups = self.int(bound.arg("num_groups")).unwrap_or(1).max(1);
                let batch = input.shape.first().map_or(1, |dim| dim.size).max(1);
                (total / (groups.saturating_mul(batch)).max(1), true)
            }
            Op::InstanceNorm => {
                (input.shape.iter().skip(2).fold(1i64, |n, dim| n.saturating_mul(dim.size)), true)
            }
            Op::BatchNorm => (total / input.shape.get(1).map_or(1, |dim| dim.size).max(1), false),
            Op::LayerNorm | Op::RmsNorm => {
                let dims = bound.arg("normalized_shape").as_sequence().map_or(1, <[Arg]>::len);
                let from = input.rank().saturating_sub(dims);
                (input.shape[from..].iter().fold(1i64, |n, dim| n.saturating_mul(dim.size)), true)
            }
            _ if keeps => {
                let dim = self.int(bound.arg("dim")).unwrap_or(-1);
                let rank = input.rank() as i64;
                let at = if dim < 0 { dim + rank } else { dim };
                let size = usize::try_from(at).ok().and_then(|at| input.shape.get(at));
                (size.map_or(1, |dim| dim.size), at == rank - 1)
            }
            _ => (total / output.elements().max(1), self.reduces_last(bound, input)),
        };
        let inner = inner.max(1);
        let space = Space { outer: (total / inner).max(1), inner };
        Work::Fold { space, innermost, keeps, apart: apart || bound.op == Op::BatchNorm }
    }

    fn reduces_last(&self, bound: &Bound, input: &TensorType) -> bool {
        let last = input.rank() as i64 - 1;
        let is_last = |arg: &Arg| self.int(arg).is_none_or(|dim| dim == -1 || dim == last);
        match bound.arg("dim") {
            Arg::Tuple(dims) | Arg::List(dims) => dims.is_empty() || dims.iter().any(is_last),
            Arg::None => true,
            dim => is_last(dim),
        }
    }

    fn convolution(&self, bound: &Bound, output: &TensorType) -> Work {
        let (Some(input), Some(weight)) =
            (self.tensor(bound.arg("input")), self.tensor(bound.arg("weight")))
        else {
            return Work::Library;
        };
        let size = |at: usize| weight.shape.get(at).map_or(1, |dim| dim.size);
        let window = weight.shape.iter().skip(2).fold(1i64, |n, dim| n.saturating_mul(dim.size));
        let field = input.shape.iter().skip(2).fold(1i64, |n, dim| n.saturating_mul(dim.size));
        let channels = input.shape.get(1).map_or(1, |dim| dim.size);
        let groups = self.int(bound.arg("groups")).unwrap_or(1);
        let flops = output.elements() as f64 * (size(1).saturating_mul(window)) as f64;
        // How much faster or slower convolutions run with channels last, as TorchInductor weighs them.
        let factor = if groups > 1 && size(1) > 1 {
            1.358
        } else if size(0) <= 64 && size(1) <= 64 {
            0.783
        } else if size(0) * 2 <= size(1) && size(2) > 1 {
            0.725
        } else {
            0.823
        };
        Work::Convolution(Convolution {
            elements: output.elements(),
            two_dimensional: weight.rank() == 4,
            biased: !bound.arg("bias").is_none(),
            moves_input: channels > 1 && field > 1,
            moves_weight: size(1) > 1 && window > 1,
            flops,
            weighted_flops: flops * factor,
        })
    }

    /// Whether a matrix product needs its own copy of an operand: leading dimensions that do not merge.
    pub fn needs_copy(&self, operand: &TensorType, leading: usize) -> bool {
        let dims: Vec<(i64, i64)> = operand
            .shape
            .iter()
            .zip(&operand.strides)
            .take(leading)
            .map(|(dim, stride)| (dim.size, *stride))
            .filter(|(size, _)| *size != 1)
            .collect();
        dims.windows(2).any(|pair| pair[0].1 != pair[1].1.saturating_mul(pair[1].0))
    }
}

fn bound_rank(op: Op) -> usize {
    match op {
        Op::AdaptiveAvgPool1d => 1,
        Op::AdaptiveAvgPool3d => 3,
        _ => 2,
    }
}

/// Scalar instructions of a pointwise operation, after decomposition; only the order of magnitude matters.
fn instructions(op: Op) -> u32 {
    match op {
        Op::Gelu | Op::Mish => 9,
        Op::Silu | Op::Hardswish | Op::Softplus | Op::Elu | Op::Selu | Op::Celu => 6,
        Op::Sigmoid | Op::Hardsigmoid | Op::Tanh | Op::Erf | Op::Lerp | Op::Addcmul => 4,
        _ => 2,
    }
}
