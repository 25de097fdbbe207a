//! Pooling, interpolation and sampling grids.

use super::{
    Alias::Fresh,
    Class::{Pooling, Resampling},
    Op, OpSpec, entry,
};

const fn pooling(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Pooling, Fresh, signatures, spellings)
}

const fn resampling(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Resampling, Fresh, signatures, spellings)
}

const MAX_POOL: &[&str] = &[
    "input:T, kernel_size:Z, stride:Z=None, padding:Z=0, dilation:Z=1, ceil_mode:B=False, return_indices:B=False",
];
const AVG_POOL: &[&str] = &[
    "input:T, kernel_size:Z, stride:Z=None, padding:Z=0, ceil_mode:B=False, count_include_pad:B=True, divisor_override:I=None",
];
const LP_POOL: &[&str] = &["input:T, norm_type:N, kernel_size:Z, stride:Z=None, ceil_mode:B=False"];
const ADAPTIVE: &[&str] = &["input:T, output_size:A, return_indices:B=False"];

pub(super) static SPECS: &[OpSpec] = &[
    pooling(
        Op::MaxPool1d,
        MAX_POOL,
        &[
            "torch.nn.functional.max_pool1d",
            "torch.max_pool1d",
            "torch.nn.functional.boolean_dispatch.max_pool1d",
        ],
    ),
    pooling(Op::MaxPool2d, MAX_POOL, &["torch.nn.functional.max_pool2d", "torch.max_pool2d"]),
    pooling(Op::MaxPool3d, MAX_POOL, &["torch.nn.functional.max_pool3d", "torch.max_pool3d"]),
    pooling(Op::AvgPool1d, AVG_POOL, &["torch.nn.functional.avg_pool1d", "torch.avg_pool1d"]),
    pooling(
        Op::AvgPool2d,
        AVG_POOL,
        &["torch.nn.functional.avg_pool2d", "torch._C._nn.avg_pool2d"],
    ),
    pooling(
        Op::AvgPool3d,
        AVG_POOL,
        &["torch.nn.functional.avg_pool3d", "torch._C._nn.avg_pool3d"],
    ),
    pooling(Op::LpPool1d, LP_POOL, &["torch.nn.functional.lp_pool1d"]),
    pooling(Op::LpPool2d, LP_POOL, &["torch.nn.functional.lp_pool2d"]),
    pooling(Op::LpPool3d, LP_POOL, &["torch.nn.functional.lp_pool3d"]),
    pooling(
        Op::AdaptiveAvgPool1d,
        ADAPTIVE,
        &["torch.nn.functional.adaptive_avg_pool1d", "torch.adaptive_avg_pool1d"],
    ),
    pooling(
        Op::AdaptiveAvgPool2d,
        ADAPTIVE,
        &["torch.nn.functional.adaptive_avg_pool2d", "torch._C._nn.adaptive_avg_pool2d"],
    ),
    pooling(
        Op::AdaptiveAvgPool3d,
        ADAPTIVE,
        &["torch.nn.functional.adaptive_avg_pool3d", "torch._C._nn.adaptive_avg_pool3d"],
    ),
    pooling(
        Op::AdaptiveMaxPool1d,
        ADAPTIVE,
        &["torch.nn.functional.adaptive_max_pool1d", "torch.adaptive_max_pool1d"],
    ),
    pooling(
        Op::AdaptiveMaxPool2d,
        ADAPTIVE,
        &["torch.nn.functional.adaptive_max_pool2d", "torch._C._nn.adaptive_max_pool2d"],
    ),
    pooling(Op::AdaptiveMaxPool3d, ADAPTIVE, &["torch.nn.functional.adaptive_max_pool3d"]),
    resampling(
        Op::Interpolate,
        &[
            "input:T, size:A=None, scale_factor:A=None, mode:W='nearest', align_corners:B=None, recompute_scale_factor:B=None, antialias:B=False",
        ],
        &["torch.nn.functional.interpolate", "torch.nn.functional.upsample"],
    ),
    resampling(
        Op::GridSample,
        &["input:T, grid:T, mode:W='bilinear', padding_mode:W='zeros', align_corners:B=None"],
        &["torch.nn.functional.grid_sample"],
    ),
    resampling(
        Op::AffineGrid,
        &["theta:T, size:Z, align_corners:B=None"],
        &["torch.nn.functional.affine_grid"],
    ),
];
