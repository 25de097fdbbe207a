//! Python numbers, sizes and properties of tensors.

use super::{Alias::Fresh, Class::Scalar, Op, OpSpec, entry};

const fn scalar(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Scalar, Fresh, signatures, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    scalar(
        Op::Item,
        &["input:T"],
        &[
            ".item",
            "torch.ops.aten._local_scalar_dense",
            "torch.ops.aten._local_scalar_dense.default",
        ],
    ),
    scalar(Op::ToList, &["input:T"], &[".tolist"]),
    scalar(
        Op::Size,
        &["input:T, dim:I=None"],
        &[".size", "torch.ops.aten.sym_size.int", "torch.ops.aten.sym_size"],
    ),
    scalar(Op::Shape, &["input:T"], &["@shape"]),
    scalar(
        Op::Numel,
        &["input:T"],
        &[".numel", ".nelement", "torch.numel", "torch.ops.aten.sym_numel"],
    ),
    scalar(Op::Dim, &["input:T"], &[".dim", ".ndimension", "@ndim"]),
    scalar(Op::Stride, &["input:T, dim:I=None"], &[".stride", "torch.ops.aten.sym_stride.int"]),
    scalar(Op::StorageOffset, &["input:T"], &[".storage_offset"]),
    scalar(Op::DeviceOf, &["input:T"], &["@device"]),
    scalar(Op::DtypeOf, &["input:T"], &["@dtype"]),
    scalar(Op::IsContiguous, &["input:T, *, memory_format:A=None"], &[".is_contiguous"]),
    scalar(Op::SymSum, &["args:A"], &["torch.sym_sum"]),
    scalar(Op::SymInt, &["a:N"], &["torch.sym_int", "int", "math.trunc"]),
    scalar(Op::SymFloat, &["a:N"], &["torch.sym_float", "float"]),
    scalar(Op::SymMax, &["a:N, b:N"], &["torch.sym_max", "max"]),
    scalar(Op::SymMin, &["a:N, b:N"], &["torch.sym_min", "min"]),
    scalar(Op::SymNot, &["a:B"], &["torch.sym_not"]),
    scalar(Op::SymIte, &["b:B, t:N, f:N"], &["torch.sym_ite"]),
    scalar(Op::SymSqrt, &["a:N"], &["torch.sym_sqrt", "torch._sym_sqrt", "math.sqrt"]),
    scalar(Op::MathCeil, &["a:N"], &["math.ceil"]),
    scalar(Op::MathFloor, &["a:N"], &["math.floor"]),
    scalar(Op::RoundNumber, &["a:N, ndigits:I=None"], &["round"]),
    scalar(Op::MakeSize, &["values:A=()"], &["torch.Size"]),
    scalar(Op::MakeDevice, &["type:A, index:I=None"], &["torch.device"]),
    scalar(Op::PromoteTypes, &["type1:D, type2:D"], &["torch.promote_types"]),
];
