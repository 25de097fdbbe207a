//! Folds over dimensions, and running folds along one.

use super::{
    Alias::Fresh,
    Class::{Reduction, Scan, Transform},
    Op, OpSpec, entry,
};

const fn reduction(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Reduction, Fresh, signatures, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    reduction(
        Op::Sum,
        &["input:T, dim:Z=None, keepdim:B=False, *, dtype:D=None"],
        &["torch.sum", ".sum"],
    ),
    reduction(
        Op::Mean,
        &["input:T, dim:Z=None, keepdim:B=False, *, dtype:D=None"],
        &["torch.mean", ".mean"],
    ),
    reduction(
        Op::NanSum,
        &["input:T, dim:Z=None, keepdim:B=False, *, dtype:D=None"],
        &["torch.nansum", ".nansum"],
    ),
    reduction(
        Op::Prod,
        &["input:T, dim:I, keepdim:B=False, *, dtype:D=None", "input:T, *, dtype:D=None"],
        &["torch.prod", ".prod"],
    ),
    reduction(
        Op::Max,
        &["input:T, dim:I, keepdim:B=False", "input:T, other:T", "input:T"],
        &["torch.max", ".max"],
    ),
    reduction(
        Op::Min,
        &["input:T, dim:I, keepdim:B=False", "input:T, other:T", "input:T"],
        &["torch.min", ".min"],
    ),
    reduction(Op::Amax, &["input:T, dim:Z=(), keepdim:B=False"], &["torch.amax", ".amax"]),
    reduction(Op::Amin, &["input:T, dim:Z=(), keepdim:B=False"], &["torch.amin", ".amin"]),
    reduction(Op::Argmax, &["input:T, dim:I=None, keepdim:B=False"], &["torch.argmax", ".argmax"]),
    reduction(Op::Argmin, &["input:T, dim:I=None, keepdim:B=False"], &["torch.argmin", ".argmin"]),
    reduction(Op::All, &["input:T, dim:Z=None, keepdim:B=False"], &["torch.all", ".all"]),
    reduction(Op::Any, &["input:T, dim:Z=None, keepdim:B=False"], &["torch.any", ".any"]),
    reduction(
        Op::Var,
        &[
            "input:T, dim:Z=None, *, correction:N=1, keepdim:B=False",
            "input:T, dim:Z, unbiased:B=True, keepdim:B=False",
            "input:T, unbiased:B",
        ],
        &["torch.var", ".var"],
    ),
    reduction(
        Op::Std,
        &[
            "input:T, dim:Z=None, *, correction:N=1, keepdim:B=False",
            "input:T, dim:Z, unbiased:B=True, keepdim:B=False",
            "input:T, unbiased:B",
        ],
        &["torch.std", ".std"],
    ),
    reduction(
        Op::VarMean,
        &[
            "input:T, dim:Z=None, *, correction:N=1, keepdim:B=False",
            "input:T, dim:Z, unbiased:B=True, keepdim:B=False",
        ],
        &["torch.var_mean"],
    ),
    reduction(
        Op::StdMean,
        &[
            "input:T, dim:Z=None, *, correction:N=1, keepdim:B=False",
            "input:T, dim:Z, unbiased:B=True, keepdim:B=False",
        ],
        &["torch.std_mean"],
    ),
    reduction(
        Op::Norm,
        &[
            "input:T, p:A='fro', dim:Z=None, keepdim:B=False, dtype:D=None",
            "input:T, p:A='fro', dim:Z=None, keepdim:B=False, out:T=None, dtype:D=None",
        ],
        &["torch.norm", "torch.functional.norm", ".norm"],
    ),
    reduction(
        Op::LinalgNorm,
        &[
            "input:T, ord:A=None, dim:Z=None, keepdim:B=False, *, dtype:D=None",
            "input:T, ord:A=None, dim:Z=None, keepdim:B=False, *, out:T=None, dtype:D=None",
        ],
        &["torch.linalg.norm", "torch._C._linalg.linalg_norm"],
    ),
    reduction(
        Op::VectorNorm,
        &["input:T, ord:N=2, dim:Z=None, keepdim:B=False, *, dtype:D=None"],
        &["torch.linalg.vector_norm", "torch._C._linalg.linalg_vector_norm"],
    ),
    reduction(
        Op::Logsumexp,
        &["input:T, dim:Z, keepdim:B=False"],
        &["torch.logsumexp", ".logsumexp", "torch.special.logsumexp"],
    ),
    reduction(
        Op::CountNonzero,
        &["input:T, dim:Z=None"],
        &["torch.count_nonzero", ".count_nonzero"],
    ),
    reduction(
        Op::Median,
        &["input:T, dim:I, keepdim:B=False", "input:T"],
        &["torch.median", ".median"],
    ),
    reduction(
        Op::NanMean,
        &["input:T, dim:Z=None, keepdim:B=False, *, dtype:D=None"],
        &["torch.nanmean", ".nanmean"],
    ),
    reduction(
        Op::Aminmax,
        &["input:T, *, dim:I=None, keepdim:B=False"],
        &["torch.aminmax", ".aminmax"],
    ),
    entry(
        Op::Quantile,
        Transform,
        Fresh,
        &["input:T, q:S, dim:I=None, keepdim:B=False, *, interpolation:W='linear', out:T=None"],
        &["torch.quantile", ".quantile"],
    ),
    entry(
        Op::Kthvalue,
        Transform,
        Fresh,
        &["input:T, k:I, dim:I=-1, keepdim:B=False"],
        &["torch.kthvalue", ".kthvalue"],
    ),
    entry(
        Op::Trapezoid,
        Transform,
        Fresh,
        &["y:T, x:T, *, dim:I=-1", "y:T, *, dx:N=1, dim:I=-1"],
        &["torch.trapezoid", "torch.trapz"],
    ),
    entry(
        Op::Logcumsumexp,
        Scan,
        Fresh,
        &["input:T, dim:I"],
        &["torch.logcumsumexp", ".logcumsumexp"],
    ),
    entry(
        Op::Cumsum,
        Scan,
        Fresh,
        &["input:T, dim:I, *, dtype:D=None"],
        &["torch.cumsum", ".cumsum", ".cumsum_"],
    ),
    entry(
        Op::Cumprod,
        Scan,
        Fresh,
        &["input:T, dim:I, *, dtype:D=None"],
        &["torch.cumprod", ".cumprod"],
    ),
    entry(Op::Cummax, Scan, Fresh, &["input:T, dim:I"], &["torch.cummax", ".cummax"]),
    entry(Op::Cummin, Scan, Fresh, &["input:T, dim:I"], &["torch.cummin", ".cummin"]),
    entry(
        Op::Topk,
        Transform,
        Fresh,
        &["input:T, k:I, dim:I=-1, largest:B=True, sorted:B=True"],
        &["torch.topk", ".topk"],
    ),
    entry(
        Op::Sort,
        Transform,
        Fresh,
        &["input:T, dim:I=-1, descending:B=False, stable:B=False"],
        &["torch.sort", ".sort"],
    ),
    entry(
        Op::Argsort,
        Transform,
        Fresh,
        &["input:T, dim:I=-1, descending:B=False, stable:B=False"],
        &["torch.argsort", ".argsort"],
    ),
];
