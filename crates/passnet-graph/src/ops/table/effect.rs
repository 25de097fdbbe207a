//! Calls made for what they do: mode switches, assertions, logging, vmap nesting.

use super::{Alias::Fresh, Alias::View, Class::Effect, Op, OpSpec, entry};

const fn effect(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Effect, Fresh, signatures, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    effect(
        Op::SetGradEnabled,
        &["enabled:B"],
        &["torch._C._set_grad_enabled", "torch.set_grad_enabled"],
    ),
    effect(
        Op::EnterAutocast,
        &["device_type:W, dtype:D=None, enabled:B=None, cache_enabled:B=None"],
        &["torch.amp.autocast_mode._enter_autocast"],
    ),
    effect(Op::ExitAutocast, &["mode:A"], &["torch.amp.autocast_mode._exit_autocast"]),
    effect(Op::LogApiUsage, &["event:W"], &["torch._C._log_api_usage_once"]),
    effect(
        Op::AssertScalar,
        &["value:A, message:W"],
        &["torch.ops.aten._assert_scalar.default", "torch.ops.aten._assert_scalar"],
    ),
    effect(
        Op::AssertAsync,
        &["value:A, message:W=None"],
        &["torch._assert_async", "torch.ops.aten._assert_async.msg", "torch._assert"],
    ),
    effect(
        Op::CheckSize,
        &["value:A, message:A=None, *, max:I=None"],
        &["torch._check_is_size", "torch._check"],
    ),
    effect(Op::FunctionCtx, &[""], &["torch.autograd.function.FunctionCtx"]),
    effect(
        Op::LazyLoadDecompositions,
        &[""],
        &[
            "torch._functorch.predispatch.lazy_load_decompositions",
            "torch._functorch.vmap.lazy_load_decompositions",
        ],
    ),
    effect(
        Op::VmapIncrementNesting,
        &["batch_size:I, randomness:W"],
        &[
            "torch._functorch.predispatch._vmap_increment_nesting",
            "torch._C._functorch._vmap_increment_nesting",
        ],
    ),
    effect(
        Op::VmapDecrementNesting,
        &[""],
        &[
            "torch._functorch.predispatch._vmap_decrement_nesting",
            "torch._C._functorch._vmap_decrement_nesting",
        ],
    ),
    entry(
        Op::AddBatchDim,
        Effect,
        View,
        &["input:T, in_dim:I, level:I"],
        &["torch._functorch.predispatch._add_batch_dim", "torch._C._functorch._add_batch_dim"],
    ),
    entry(
        Op::RemoveBatchDim,
        Effect,
        View,
        &["input:T, level:I, batch_size:I, out_dim:I"],
        &[
            "torch._functorch.predispatch._remove_batch_dim",
            "torch._C._functorch._remove_batch_dim",
        ],
    ),
];
