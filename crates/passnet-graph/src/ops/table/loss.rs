//! Losses of `torch.nn.functional`. The old arguments `size_average` and `reduce` stand where torch has them.

use super::{Alias::Fresh, Class::Transform, Op, OpSpec, entry};

const fn loss(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Transform, Fresh, signatures, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    loss(
        Op::MseLoss,
        &[
            "input:T, target:T, size_average:A=None, reduce:A=None, reduction:W='mean', weight:T=None",
        ],
        &["torch.nn.functional.mse_loss"],
    ),
    loss(
        Op::L1Loss,
        &[
            "input:T, target:T, size_average:A=None, reduce:A=None, reduction:W='mean', weight:T=None",
        ],
        &["torch.nn.functional.l1_loss"],
    ),
    loss(
        Op::SmoothL1Loss,
        &["input:T, target:T, size_average:A=None, reduce:A=None, reduction:W='mean', beta:N=1.0"],
        &["torch.nn.functional.smooth_l1_loss"],
    ),
    loss(
        Op::HuberLoss,
        &["input:T, target:T, reduction:W='mean', delta:N=1.0, weight:T=None"],
        &["torch.nn.functional.huber_loss"],
    ),
    loss(
        Op::CrossEntropy,
        &[
            "input:T, target:T, weight:T=None, size_average:A=None, ignore_index:I=-100, reduce:A=None, reduction:W='mean', label_smoothing:N=0.0",
        ],
        &["torch.nn.functional.cross_entropy"],
    ),
    loss(
        Op::NllLoss,
        &[
            "input:T, target:T, weight:T=None, size_average:A=None, ignore_index:I=-100, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.nll_loss"],
    ),
    loss(
        Op::CtcLoss,
        &[
            "log_probs:T, targets:T, input_lengths:A, target_lengths:A, blank:I=0, reduction:W='mean', zero_infinity:B=False",
        ],
        &["torch.nn.functional.ctc_loss"],
    ),
    loss(
        Op::BinaryCrossEntropy,
        &[
            "input:T, target:T, weight:T=None, size_average:A=None, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.binary_cross_entropy"],
    ),
    loss(
        Op::BinaryCrossEntropyWithLogits,
        &[
            "input:T, target:T, weight:T=None, size_average:A=None, reduce:A=None, reduction:W='mean', pos_weight:T=None",
        ],
        &["torch.nn.functional.binary_cross_entropy_with_logits"],
    ),
    loss(
        Op::KlDiv,
        &[
            "input:T, target:T, size_average:A=None, reduce:A=None, reduction:W='mean', log_target:B=False",
        ],
        &["torch.nn.functional.kl_div"],
    ),
    loss(
        Op::PoissonNllLoss,
        &[
            "input:T, target:T, log_input:B=True, full:B=False, size_average:A=None, eps:N=1e-08, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.poisson_nll_loss"],
    ),
    loss(
        Op::GaussianNllLoss,
        &["input:T, target:T, var:S, full:B=False, eps:N=1e-06, reduction:W='mean'"],
        &["torch.nn.functional.gaussian_nll_loss"],
    ),
    loss(
        Op::SoftMarginLoss,
        &["input:T, target:T, size_average:A=None, reduce:A=None, reduction:W='mean'"],
        &["torch.nn.functional.soft_margin_loss"],
    ),
    loss(
        Op::HingeEmbeddingLoss,
        &[
            "input:T, target:T, margin:N=1.0, size_average:A=None, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.hinge_embedding_loss"],
    ),
    loss(
        Op::MarginRankingLoss,
        &[
            "input1:T, input2:T, target:T, margin:N=0, size_average:A=None, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.margin_ranking_loss"],
    ),
    loss(
        Op::CosineEmbeddingLoss,
        &[
            "input1:T, input2:T, target:T, margin:N=0, size_average:A=None, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.cosine_embedding_loss"],
    ),
    loss(
        Op::TripletMarginLoss,
        &[
            "anchor:T, positive:T, negative:T, margin:N=1.0, p:N=2, eps:N=1e-06, swap:B=False, size_average:A=None, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.triplet_margin_loss"],
    ),
    loss(
        Op::MultiMarginLoss,
        &[
            "input:T, target:T, p:I=1, margin:N=1.0, weight:T=None, size_average:A=None, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.multi_margin_loss"],
    ),
    loss(
        Op::MultilabelSoftMarginLoss,
        &[
            "input:T, target:T, weight:T=None, size_average:A=None, reduce:A=None, reduction:W='mean'",
        ],
        &["torch.nn.functional.multilabel_soft_margin_loss"],
    ),
];
