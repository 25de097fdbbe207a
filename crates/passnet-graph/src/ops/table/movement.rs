//! Copies of elements to other places.

use super::{Alias::Fresh, Class::Movement, Op, OpSpec, entry};

const fn movement(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Movement, Fresh, signatures, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    movement(Op::Cat, &["tensors:L, dim:I=0"], &["torch.cat", "torch.concat", "torch.concatenate"]),
    movement(Op::Stack, &["tensors:L, dim:I=0"], &["torch.stack"]),
    movement(Op::Hstack, &["tensors:L"], &["torch.hstack"]),
    movement(Op::Vstack, &["tensors:L"], &["torch.vstack"]),
    movement(
        Op::Pad,
        &["input:T, pad:Z, mode:W='constant', value:N=None"],
        &["torch.nn.functional.pad", "torch._C._nn.pad"],
    ),
    movement(Op::ConstantPadNd, &["input:T, pad:Z, value:N=0"], &["torch.constant_pad_nd"]),
    movement(
        Op::Diff,
        &["input:T, n:I=1, dim:I=-1, prepend:T=None, append:T=None"],
        &["torch.diff", ".diff"],
    ),
    movement(Op::Roll, &["input:T, shifts:Z, dims:Z=None"], &["torch.roll", ".roll"]),
    movement(Op::Flip, &["input:T, *dims:I"], &["torch.flip", ".flip"]),
    movement(Op::Rot90, &["input:T, k:I=1, dims:Z=(0,1)"], &["torch.rot90", ".rot90"]),
    movement(Op::Repeat, &["input:T, *repeats:I"], &[".repeat"]),
    movement(Op::Tile, &["input:T, *dims:I"], &["torch.tile", ".tile"]),
    movement(
        Op::RepeatInterleave,
        &["input:T, repeats:S, dim:I=None, *, output_size:I=None"],
        &["torch.repeat_interleave", ".repeat_interleave"],
    ),
    movement(Op::Clone, &["input:T, *, memory_format:A=None"], &["torch.clone", ".clone"]),
    movement(Op::Copy, &["input:T, src:T, non_blocking:B=False"], &[".copy_"]),
    movement(Op::Tril, &["input:T, diagonal:I=0"], &["torch.tril", ".tril", ".tril_"]),
    movement(Op::Triu, &["input:T, diagonal:I=0"], &["torch.triu", ".triu", ".triu_"]),
    movement(Op::Diag, &["input:T, diagonal:I=0"], &["torch.diag", ".diag"]),
    movement(
        Op::DiagEmbed,
        &["input:T, offset:I=0, dim1:I=-2, dim2:I=-1"],
        &["torch.diag_embed", ".diag_embed"],
    ),
    movement(
        Op::Unfold,
        &["input:T, kernel_size:Z, dilation:Z=1, padding:Z=0, stride:Z=1"],
        &["torch.nn.functional.unfold", "torch._C._nn.im2col"],
    ),
    movement(
        Op::Fold,
        &["input:T, output_size:Z, kernel_size:Z, dilation:Z=1, padding:Z=0, stride:Z=1"],
        &["torch.nn.functional.fold", "torch._C._nn.col2im"],
    ),
    movement(
        Op::PixelShuffle,
        &["input:T, upscale_factor:I"],
        &["torch.pixel_shuffle", "torch.nn.functional.pixel_shuffle"],
    ),
    movement(
        Op::PixelUnshuffle,
        &["input:T, downscale_factor:I"],
        &["torch.pixel_unshuffle", "torch.nn.functional.pixel_unshuffle"],
    ),
    movement(
        Op::ChannelShuffle,
        &["input:T, groups:I"],
        &["torch.channel_shuffle", "torch.nn.functional.channel_shuffle"],
    ),
    movement(
        Op::Meshgrid,
        &["*tensors:T, indexing:W='ij'"],
        &["torch.meshgrid", "torch.functional.meshgrid"],
    ),
    movement(
        Op::CartesianProd,
        &["*tensors:T"],
        &["torch.cartesian_prod", "torch.functional.cartesian_prod"],
    ),
    movement(Op::Complex, &["real:T, imag:T"], &["torch.complex"]),
    movement(Op::Polar, &["abs:T, angle:T"], &["torch.polar"]),
];
