//! Normalisations, softmax, dropout.

use super::{
    Alias::{Fresh, MayView},
    Class::{Normalisation, Random},
    Op, OpSpec, entry,
};

const fn normalisation(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Normalisation, Fresh, signatures, spellings)
}

const DROPOUT: &[&str] =
    &["input:T, p:N=0.5, training:B=True, inplace:B=False", "input:T, p:N=0.5, train:B=True"];

/// Dropout returns its argument itself outside training.
const fn dropout(op: Op, spellings: &'static [&'static str]) -> OpSpec {
    entry(op, Random, MayView, DROPOUT, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    normalisation(
        Op::LayerNorm,
        &[
            "input:T, normalized_shape:Z, weight:T=None, bias:T=None, eps:N=1e-05, cudnn_enable:B=True",
        ],
        &["torch.nn.functional.layer_norm", "torch.layer_norm"],
    ),
    normalisation(
        Op::BatchNorm,
        &[
            "input:T, running_mean:T=None, running_var:T=None, weight:T=None, bias:T=None, training:B=False, momentum:N=0.1, eps:N=1e-05",
            "input:T, weight:T, bias:T, running_mean:T, running_var:T, training:B, momentum:N, eps:N, cudnn_enabled:B",
        ],
        &["torch.nn.functional.batch_norm", "torch.batch_norm"],
    ),
    normalisation(
        Op::GroupNorm,
        &["input:T, num_groups:I, weight:T=None, bias:T=None, eps:N=1e-05, cudnn_enabled:B=True"],
        &["torch.nn.functional.group_norm", "torch.group_norm"],
    ),
    normalisation(
        Op::InstanceNorm,
        &[
            "input:T, running_mean:T=None, running_var:T=None, weight:T=None, bias:T=None, use_input_stats:B=True, momentum:N=0.1, eps:N=1e-05",
        ],
        &["torch.nn.functional.instance_norm"],
    ),
    normalisation(
        Op::RmsNorm,
        &["input:T, normalized_shape:Z, weight:T=None, eps:N=None"],
        &["torch.rms_norm", "torch.nn.functional.rms_norm"],
    ),
    normalisation(
        Op::LocalResponseNorm,
        &["input:T, size:I, alpha:N=0.0001, beta:N=0.75, k:N=1.0"],
        &["torch.nn.functional.local_response_norm"],
    ),
    normalisation(
        Op::Normalize,
        &["input:T, p:N=2.0, dim:Z=1, eps:N=1e-12, out:T=None"],
        &["torch.nn.functional.normalize"],
    ),
    normalisation(Op::WeightNorm, &["v:T, g:T, dim:I=0"], &["torch._weight_norm"]),
    normalisation(
        Op::Softmax,
        &["input:T, dim:I=None, _stacklevel:I=3, dtype:D=None", "input:T, dim:I, dtype:D=None"],
        &["torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax", ".softmax"],
    ),
    normalisation(
        Op::LogSoftmax,
        &["input:T, dim:I=None, _stacklevel:I=3, dtype:D=None", "input:T, dim:I, dtype:D=None"],
        &["torch.log_softmax", "torch.nn.functional.log_softmax", ".log_softmax"],
    ),
    normalisation(
        Op::Softmin,
        &["input:T, dim:I=None, _stacklevel:I=3, dtype:D=None", "input:T, dim:I, dtype:D=None"],
        &["torch.nn.functional.softmin"],
    ),
    normalisation(
        Op::Glu,
        &["input:T, dim:I=-1"],
        &["torch.nn.functional.glu", "torch._C._nn.glu"],
    ),
    dropout(Op::Dropout, &["torch.nn.functional.dropout", "torch.dropout", "torch.dropout_"]),
    dropout(Op::Dropout1d, &["torch.nn.functional.dropout1d"]),
    dropout(Op::Dropout2d, &["torch.nn.functional.dropout2d", "torch.feature_dropout"]),
    dropout(Op::Dropout3d, &["torch.nn.functional.dropout3d"]),
    dropout(Op::AlphaDropout, &["torch.nn.functional.alpha_dropout", "torch.alpha_dropout"]),
];
