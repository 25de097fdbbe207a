//! New metadata over the same memory, and the operations that are views where they can be.

use super::{
    Alias::{MayView, View as Shared},
    Class::View,
    Op, OpSpec, entry,
};

const fn view(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, View, Shared, signatures, spellings)
}

const fn may_view(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, View, MayView, signatures, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    view(Op::View, &["input:T, dtype:D", "input:T, *size:I"], &[".view", "torch.Tensor.view"]),
    view(Op::ViewAs, &["input:T, other:T"], &[".view_as"]),
    may_view(Op::Reshape, &["input:T, *shape:I"], &["torch.reshape", ".reshape"]),
    may_view(Op::ReshapeAs, &["input:T, other:T"], &[".reshape_as"]),
    may_view(
        Op::Flatten,
        &["input:T, start_dim:I=0, end_dim:I=-1"],
        &["torch.flatten", ".flatten"],
    ),
    view(Op::Unflatten, &["input:T, dim:I, sizes:Z"], &["torch.unflatten", ".unflatten"]),
    view(
        Op::Transpose,
        &["input:T, dim0:I, dim1:I"],
        &[
            "torch.transpose",
            "torch.swapaxes",
            "torch.swapdims",
            ".transpose",
            ".transpose_",
            ".swapaxes",
            ".swapdims",
        ],
    ),
    view(Op::TransposeMatrix, &["input:T"], &["torch.t", ".t", ".t_"]),
    view(Op::ReverseDims, &["input:T"], &["@T"]),
    view(Op::MatrixTranspose, &["input:T"], &["@mT", "torch.adjoint", "@mH"]),
    view(Op::Permute, &["input:T, *dims:I"], &["torch.permute", ".permute"]),
    view(
        Op::Movedim,
        &["input:T, source:Z, destination:Z"],
        &["torch.movedim", "torch.moveaxis", ".movedim", ".moveaxis"],
    ),
    view(Op::Squeeze, &["input:T, dim:Z=None"], &["torch.squeeze", ".squeeze", ".squeeze_"]),
    view(Op::Unsqueeze, &["input:T, dim:I"], &["torch.unsqueeze", ".unsqueeze", ".unsqueeze_"]),
    view(Op::Expand, &["input:T, *size:I"], &[".expand"]),
    view(Op::ExpandAs, &["input:T, other:T"], &[".expand_as"]),
    view(Op::BroadcastTo, &["input:T, size:Z"], &["torch.broadcast_to", ".broadcast_to"]),
    view(
        Op::BroadcastTensors,
        &["*tensors:T"],
        &["torch.broadcast_tensors", "torch.functional.broadcast_tensors"],
    ),
    view(Op::Narrow, &["input:T, dim:I, start:I, length:I"], &["torch.narrow", ".narrow"]),
    view(Op::Select, &["input:T, dim:I, index:I"], &["torch.select", ".select"]),
    view(Op::Chunk, &["input:T, chunks:I, dim:I=0"], &["torch.chunk", ".chunk"]),
    view(
        Op::Split,
        &[
            "tensor:T, split_size_or_sections:Z, dim:I=0",
            "input:T, split_size:Z, dim:I=0",
            "input:T, split_sizes:Z, dim:I=0",
        ],
        &[
            "torch.split",
            "torch.functional.split",
            ".split",
            "torch.split_with_sizes",
            ".split_with_sizes",
        ],
    ),
    view(
        Op::TensorSplit,
        &[
            "input:T, indices_or_sections:Z, dim:I=0",
            "input:T, sections:Z, dim:I=0",
            "input:T, indices:Z, dim:I=0",
        ],
        &["torch.tensor_split", ".tensor_split"],
    ),
    view(Op::Unbind, &["input:T, dim:I=0"], &["torch.unbind", ".unbind"]),
    view(
        Op::Diagonal,
        &["input:T, offset:I=0, dim1:I=0, dim2:I=1"],
        &["torch.diagonal", ".diagonal"],
    ),
    view(Op::UnfoldDim, &["input:T, dimension:I, size:I, step:I"], &[".unfold"]),
    view(
        Op::AsStrided,
        &["input:T, size:Z, stride:Z, storage_offset:I=None"],
        &["torch.as_strided", ".as_strided"],
    ),
    view(Op::Detach, &["input:T"], &["torch.detach", ".detach", ".detach_", "@data"]),
    view(Op::Real, &["input:T"], &["torch.real", "@real"]),
    view(Op::Imag, &["input:T"], &["torch.imag", "@imag"]),
    view(Op::ViewAsReal, &["input:T"], &["torch.view_as_real"]),
    view(Op::ViewAsComplex, &["input:T"], &["torch.view_as_complex"]),
    view(Op::Conj, &["input:T"], &["torch.conj", ".conj"]),
    view(Op::RequiresGrad, &["input:T, requires_grad:B=True"], &[".requires_grad_"]),
    may_view(Op::Contiguous, &["input:T, *, memory_format:A=None"], &[".contiguous"]),
    may_view(
        Op::To,
        &[
            "input:T, dtype:D, non_blocking:B=False, copy:B=False, *, memory_format:A=None",
            "input:T, device:V=None, dtype:D=None, non_blocking:B=False, copy:B=False, *, memory_format:A=None",
            "input:T, other:T, non_blocking:B=False, copy:B=False, *, memory_format:A=None",
        ],
        &[".to"],
    ),
    may_view(Op::TypeAs, &["input:T, other:T"], &[".type_as"]),
    may_view(Op::Type, &["input:T, dtype:A=None"], &[".type"]),
    may_view(Op::Cpu, &["input:T"], &[".cpu"]),
    may_view(Op::Cuda, &["input:T, device:V=None"], &[".cuda"]),
    may_view(Op::Float, &["input:T"], &[".float"]),
    may_view(Op::Double, &["input:T"], &[".double"]),
    may_view(Op::Half, &["input:T"], &[".half"]),
    may_view(Op::Bfloat16, &["input:T"], &[".bfloat16"]),
    may_view(Op::Long, &["input:T"], &[".long"]),
    may_view(Op::Int, &["input:T"], &[".int"]),
    may_view(Op::Short, &["input:T"], &[".short"]),
    may_view(Op::Byte, &["input:T"], &[".byte"]),
    may_view(Op::Bool, &["input:T"], &[".bool"]),
];
