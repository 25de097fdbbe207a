"""Goldens of whole graphs: a few statements each, run by PyTorch on the CPU.

A case names its inputs by a short notation: `f32 2 3` a float32 tensor of that shape, `i64 4 <5` integers
below five, `bool 4`, `int 7` a Python number (a `torch.SymInt` argument).
"""

from __future__ import annotations

import torch
from common import tensor_json, write

TYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
    "bool": torch.bool,
}

CASES = {
    # Python numbers and sizes.
    "sizes": ("x=f32 2 3 4", "s = x.size(1); n = s * 4 // 5; y = x.reshape(n, -1); t = x.shape; u = t[0]", "(y, n, u)"),
    "floor_division": ("x=f32 6", "t = x.shape; n = t[0]; o = -n; m = o // 4; k = o % 4; y = x + m", "(y, m, k)"),
    "symint": ("n=int 3, x=f32 3 2", "m = n * 2; y = x.view(m); z = torch.arange(0, n)", "(y, z)"),
    "list_repeat": ("x=f32 2 2", "p = [1] * 2; y = x.repeat(p)", "(y,)"),
    "item": ("x=i64 1 <9", "n = x.item(); y = torch.zeros(n + 1)", "(y,)"),
    # Views share memory, in-place operations write through them.
    "write_through_view": ("x=f32 4 4", "y = x[1]; y += 10.0; z = x.clone()", "(z, y)"),
    "write_slice": ("x=f32 3 5", "x[slice(1, None, None), slice(0, 2, None)] = 7.0", "(x,)"),
    "write_mask": ("x=f32 4 3, m=bool 4 3", "x[m] = -1.0", "(x,)"),
    "write_index": ("x=f32 5 2, i=i64 3 <5, v=f32 3 2", "x[i] = v", "(x,)"),
    "unsqueeze_in_place": ("x=f32 3", "y = x.clone(); z = y.unsqueeze_(0); w = y + z", "(w, y)"),
    "transposed_add": ("x=f32 3 4, y=f32 4 3", "t = y.t(); z = x + t; w = z.contiguous()", "(z, w)"),
    "expand_then_add": ("x=f32 3 1, y=f32 1 4", "e = x.expand(3, 4); z = e + y; z *= 2", "(z,)"),
    "chunk_swap": ("x=f32 2 6", "a, b = x.chunk(2, -1); z = torch.cat((-b, a), -1)", "(z,)"),
    "relu_in_place": ("x=f32 3 3", "y = x - 0.1; z = torch.nn.functional.relu(y, inplace=True)", "(y, z)"),
    "out_argument": ("x=f32 3, y=f32 3", "o = torch.empty(3); z = torch.add(x, y, out=o)", "(o,)"),
    # Subscripts.
    "none_and_ellipsis": ("x=f32 2 3 4", "y = x[(slice(None, None, None), None, Ellipsis, 1)]", "(y,)"),
    "list_index": ("x=f32 4 3", "y = x[[0, 2]]", "(y,)"),
    "two_index_tensors": ("x=f32 4 5, i=i64 3 <4, j=i64 3 <5", "y = x[i, j]", "(y,)"),
    "separated_indices": (
        "x=f32 3 2 4, i=i64 2 <3, j=i64 2 <4",
        "y = x[i, slice(None, None, None), j]",
        "(y,)",
    ),
    "mask_index": ("x=f32 4 3, m=bool 4", "y = x[m]", "(y,)"),
    # Types.
    "promote_int_float": ("x=i64 4 <9", "y = x / 3; z = x * 0.5; w = x + 1", "(y, z, w)"),
    "half_keeps_its_type": ("x=f16 5", "u = x * 0.3; y = u + 1; v = x.to(torch.float32); z = v * 0.3", "(y, z)"),
    "compare_and_select": ("x=f32 4", "m = x > 0; y = torch.where(m, x, -1.0); z = m.to(torch.int64)", "(y, z)"),
    "byte_arithmetic": ("x=u8 6 <250", "y = x + 10; z = x // 7", "(y, z)"),
    # Families.
    "softmax_mask": (
        "x=f32 2 3 3, m=bool 2 3 3",
        "y = x.masked_fill(m, float('-inf')); s = y.softmax(dim=-1); z = s.nan_to_num(0.0)",
        "(z,)",
    ),
    "layer_norm_residual": (
        "x=f32 2 4 8, w=f32 8, b=f32 8",
        "y = torch.nn.functional.layer_norm(x, (8,), w, b, 1e-05); z = y + x",
        "(z,)",
    ),
    "linear_gelu": (
        "x=f32 3 8, w=f32 5 8, b=f32 5",
        "y = torch._C._nn.linear(x, w, b); z = torch.nn.functional.gelu(y)",
        "(z,)",
    ),
    "linear_bfloat16": (
        "x=bf16 3 8, w=bf16 5 8, b=bf16 5",
        "y = torch._C._nn.linear(x, w, b); z = torch.nn.functional.silu(y)",
        "(z,)",
    ),
    "conv_bn_relu": (
        "x=f32 2 3 7 7, w=f32 4 3 3 3, m=f32 4, v=f32 4 abs, g=f32 4, b=f32 4",
        "y = torch.conv2d(x, w, None, (2, 2), (1, 1), (1, 1), 1); "
        "z = torch.nn.functional.batch_norm(y, m, v, g, b, False, 0.1, 1e-05); "
        "r = torch.nn.functional.relu(z, inplace=True)",
        "(r,)",
    ),
    "pooling": (
        "x=f32 1 2 6 6",
        "y = torch.nn.functional.max_pool2d(x, 3, 2, 1, 1, ceil_mode=False, return_indices=False); "
        "z = torch.nn.functional.adaptive_avg_pool2d(y, (1, 1)); w = torch._C._nn.avg_pool2d(x, 2)",
        "(y, z, w)",
    ),
    "attention": (
        "q=f32 1 2 4 8, k=f32 1 2 4 8, v=f32 1 2 4 8",
        "y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True); "
        "z = y.transpose(1, 2); w = z.reshape(1, 4, 16)",
        "(w,)",
    ),
    "reductions": (
        "x=f32 3 4 5",
        "a = x.sum((1, 2)); b = x.mean(-1, keepdim=True); c = x.var(dim=1, unbiased=False); "
        "d, e = torch.max(x, 2); u = x * 2; f = torch.max(x, u); g = x.amax(dim=(0, 1)); h = x.argmax(1)",
        "(a, b, c, d, e, f, g, h)",
    ),
    "moments_by_flag": ("x=f32 3 4", "a = x.std(); b = x.var(False)", "(a, b)"),
    "creation": (
        "x=f32 2 2",
        "a = torch.arange(3, 9, 2); b = torch.full((2, 2), 3); c = x.new_zeros((3,)); "
        "d = torch.linspace(0, 1, 5); e = torch.eye(3); f = torch.tensor([[1, 2], [3, 4]])",
        "(a, b, c, d, e, f)",
    ),
    "movement": (
        "x=f32 2 3 4",
        "a = torch.nn.functional.pad(x, (1, 2), 'constant', 1.5); b = torch.roll(x, (1,), dims=(2,)); "
        "c = x.flip((0,)); d = torch.stack([x, x], dim=1); e = x.repeat_interleave(2, dim=1); f = x.tril()",
        "(a, b, c, d, e, f)",
    ),
    "indexing": (
        "x=f32 4 3, i=i64 2 3 <4, w=f32 6 2, t=i64 2 2 <6",
        "a = x.gather(0, i); b = torch.nn.functional.embedding(t, w, None, None, 2.0, False, False); "
        "o = torch.zeros(4, 3); c = o.scatter_(0, i, 2.0); d = torch.nn.functional.one_hot(t, 6)",
        "(a, b, c, d)",
    ),
    "dropout_outside_training": ("x=f32 3", "y = torch.nn.functional.dropout(x, 0.1, False, False)", "(y,)"),
    "dropout_in_training": (
        "x=f32 5 7, h=f16 40",
        "t = x.t(); a = torch.nn.functional.dropout(t, 0.3, True, False); "
        "b = torch.nn.functional.dropout(h, 0.5, True, False); c = torch.rand(3); "
        "d = torch.nn.functional.alpha_dropout(x, 0.2, True)",
        "(a, b, c, d)",
    ),
    "channel_dropout": ("x=f32 2 6 3 3", "a = torch.nn.functional.dropout2d(x, 0.4, True, False)", "(a,)"),
    "drawn_indices": (
        "p=f32 3 9 abs, w=f64 6 abs",
        "a = torch.multinomial(p, 1); b = torch.multinomial(p, 4); c = torch.multinomial(w, 8, True); "
        "d = p.bernoulli_(0.3)",
        "(a, b, c, d)",
    ),
    "attention_dropout": (
        "q=f32 1 2 4 8, k=f32 1 2 5 8, v=f32 1 2 5 8",
        "y = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.4)",
        "(y,)",
    ),
    "native_multi_head": (
        "x=f32 2 5 8, w=f32 24 8, b=f32 24, o=f32 8 8, c=f32 8, m=bool 5 5",
        "y = torch._native_multi_head_attention(x, x, x, 8, 2, w, b, o, c, None, False, True, None); "
        "a = y[0]; z = torch._native_multi_head_attention(x, x, x, 8, 2, w, b, o, c, m, True, True, 0); "
        "d = z[0]; e = z[1]",
        "(a, d, e)",
    ),
    "inverse_error_function": ("x=f32 64", "y = torch.tanh(x); z = y.erfinv(); w = x.erfinv()", "(z, w)"),
    "embedding_bags": (
        "i=i64 7 <5, t=f32 5 3, j=i64 2 4 <5, s=f32 7",
        "o = torch.tensor([0, 2, 2, 6]); a = torch.nn.functional.embedding_bag(i, t, o); "
        "b = torch.nn.functional.embedding_bag(i, t, o, mode='max'); "
        "c = torch.nn.functional.embedding_bag(j, t, mode='sum', padding_idx=1); "
        "d = torch.nn.functional.embedding_bag(i, t, o, mode='sum', per_sample_weights=s, include_last_offset=True)",
        "(a, b, c, d)",
    ),
    "bounded_rows": (
        "i=i64 4 <5, t=f32 5 3",
        "a = torch.nn.functional.embedding(i, t, None, 0.7, 2.0, False, False)",
        "(a, t)",
    ),
    "matrix_norms": (
        "x=f32 3 4 5",
        "m = x[0]; a = torch.linalg.norm(x, 1, (0, 2)); b = torch.linalg.norm(m, 2); "
        "c = torch.linalg.norm(m, -2); d = torch.linalg.norm(m, 'nuc'); e = torch.linalg.norm(m, float('-inf')); "
        "f = torch.linalg.norm(x, 'fro', (1, 2), True); g = torch.nn.functional.normalize(x, dim=(1, 2))",
        "(a, b, c, d, e, f, g)",
    ),
    "other_widths": (
        "x=i32 2 6 <100",
        "a = x.view(torch.int64); b = x.view(torch.int16); c = a.view(torch.uint8)",
        "(a, b, c)",
    ),
    "mask_without_dimensions": ("x=f32 2 3", "m = torch.tensor(True); y = x[m]; z = x[0, m]", "(y, z)"),
    "grid_at_infinity": (
        "x=f32 1 2 3 3, g=f32 1 1 3 2",
        "z = g * 0.0; i = 1.0 / z; f = torch.nn.functional.grid_sample(x, i, 'bilinear', 'zeros', False); "
        "b = torch.nn.functional.grid_sample(x, i, 'bilinear', 'border', False); "
        "n = torch.nn.functional.grid_sample(x, i, 'nearest', 'zeros', False)",
        "(f, b, n)",
    ),
    "best_of_equals": (
        "x=i64 2 1500 <7, y=i64 40 <4",
        "f = x.to(torch.float32); a, b = f.topk(300); c, d = f.topk(20); e, g = y.topk(9, largest=False); "
        "h, i = f.topk(1400, sorted=False)",
        "(b, d, g, i)",
    ),
    "vmap_mask": (
        "i=i64 4 <4, j=i64 5 <5",
        "torch._C._functorch._vmap_increment_nesting(4, 'error'); "
        "a = torch._C._functorch._add_batch_dim(i, 0, 1); "
        "torch._C._functorch._vmap_increment_nesting(5, 'error'); "
        "b = torch._C._functorch._add_batch_dim(j, 0, 2); n = a.new_ones((), dtype=torch.bool); l = b <= a; "
        "c = n & l; "
        "d = torch._C._functorch._remove_batch_dim(c, 2, 5, 0); "
        "torch._C._functorch._vmap_decrement_nesting(); "
        "e = torch._C._functorch._remove_batch_dim(d, 1, 4, 0); "
        "torch._C._functorch._vmap_decrement_nesting()",
        "(e,)",
    ),
    # Operations that models of speech and audio brought.
    "rounded_division_is_a_size": (
        "x=f32 6",
        "n = torch.div(7, 3, rounding_mode='trunc'); m = torch.div(-7, 2, rounding_mode='floor'); "
        "k = m + 6; y = x.view(n, 3); z = x.view(k, 3)",
        "(y, z, n, m)",
    ),
    "differences": (
        "x=i64 2 5 <9, p=i64 2 1 <9, y=f32 3 4, b=bool 6",
        "a = torch.diff(x, prepend=p, dim=-1); c = torch.diff(y, n=2); d = y.diff(1, 0); "
        "e = torch.diff(b); f = torch.diff(y, 9); g = torch.diff(y, 0); h = torch.diff(x, prepend=p, append=x)",
        "(a, c, d, e, f, g, h)",
    ),
    "xlogy": (
        "x=f32 6, i=i64 6 <3, h=f16 6",
        "a = torch.abs(x); y = torch.xlogy(a, a); z = torch.xlogy(i, i); w = torch.xlogy(i, a); "
        "b = torch.abs(h); v = torch.xlogy(b, b); u = torch.xlogy(2, a)",
        "(y, z, w, v, u)",
    ),
    # Losses and membership.
    "mse_loss": (
        "x=f32 3 5, t=f32 3 5",
        "a = torch.nn.functional.mse_loss(x, t); b = torch.nn.functional.mse_loss(x, t, reduction='none'); "
        "c = torch.nn.functional.mse_loss(x, t, reduction='sum')",
        "(a, b, c)",
    ),
    "l1_loss": (
        "x=f32 3 5, t=f32 3 5",
        "a = torch.nn.functional.l1_loss(x, t); b = torch.nn.functional.l1_loss(x, t, None, None, 'none')",
        "(a, b)",
    ),
    "cross_entropy": (
        "x=f32 6 5, t=i64 6 <5, w=f32 5 abs",
        "a = torch.nn.functional.cross_entropy(x, t); "
        "b = torch.nn.functional.cross_entropy(x, t, w, None, 2, None, 'mean', 0.1); "
        "c = torch.nn.functional.cross_entropy(x, t, weight=w, reduction='none'); "
        "d = torch.nn.functional.cross_entropy(x, t, ignore_index=1, reduction='sum', label_smoothing=0.2)",
        "(a, b, c, d)",
    ),
    "cross_entropy_images": (
        "x=f32 2 4 3 3, t=i64 2 3 3 <4",
        "a = torch.nn.functional.cross_entropy(x, t); b = torch.nn.functional.cross_entropy(x, t, reduction='none')",
        "(a, b)",
    ),
    "cross_entropy_probabilities": (
        "x=f32 4 5, t=f32 4 5 abs, w=f32 5 abs",
        "a = torch.nn.functional.cross_entropy(x, t); "
        "b = torch.nn.functional.cross_entropy(x, t, w, label_smoothing=0.1)",
        "(a, b)",
    ),
    "isin": (
        "x=i64 3 4 <9, y=i64 5 <9, f=f32 4",
        "a = torch.isin(x, y); b = torch.isin(x, 3, invert=True); c = torch.isin(f, f)",
        "(a, b, c)",
    ),
    "norm_without_out": (
        "x=f32 3 4",
        "a = torch.norm(x, 2, 1, False, out=None); b = torch.norm(x, p=2, dim=0, keepdim=True, out=None, dtype=None)",
        "(a, b)",
    ),
    "unique": (
        "x=i64 3 4 <5, f=f32 6, m=bool 2 3",
        "a = torch.unique(x, return_inverse=True, return_counts=True); b = f.round().unique(); "
        "c = torch.unique(m, sorted=False, return_counts=True); d = torch.unique_consecutive(x, return_inverse=True); "
        "e = torch.unique(f / 0 * 0)",
        "(a, b, c, d, e)",
    ),
    "unique_slices": (
        "x=i64 6 2 <2, y=i64 2 7 <2",
        "a = torch.unique(x, dim=0, return_inverse=True, return_counts=True); b = y.unique(dim=-1); "
        "c = torch.unique_consecutive(y, dim=1, return_counts=True)",
        "(a, b, c)",
    ),
    "tolist": (
        "x=i64 2 2 <3, f=f32 2, z=f32 4 3",
        "a = x.tolist(); b = a[1]; c = b[0]; d = z[c]; e = f.tolist(); g = torch.tensor(a); h = z * e[1]",
        "(a, d, e, g, h)",
    ),
    "linalg_norm_without_out": (
        "x=f32 3 4",
        "a = torch.linalg.norm(x, None, 1, False, out=None)",
        "(a,)",
    ),
    # Recurrent layers.
    "lstm": (
        "x=f32 5 2 3, h=f32 1 2 4, c=f32 1 2 4, w=f32 16 3, u=f32 16 4, b=f32 16, d=f32 16",
        "l = torch.lstm(x, (h, c), [w, u, b, d], True, 1, 0.0, False, False, False); "
        "a = l[0]; e = l[1]; f = l[2]; m = torch.lstm(x, (h, c), [w, u], False, 1, 0.0, True, False, False); g = m[0]",
        "(a, e, f, g)",
    ),
    "lstm_of_two_layers_in_both_directions": (
        "x=f64 2 6 3, h=f64 4 2 4, c=f64 4 2 4, w=f64 16 3, u=f64 16 4, v=f64 16 8, b=f64 16, d=f64 16",
        "l = torch.lstm(x, (h, c), [w, u, b, d, w, u, d, b, v, u, b, b, v, u, d, d], True, 2, 0.5, False, True, True); "
        "a = l[0]; e = l[1]; f = l[2]",
        "(a, e, f)",
    ),
    "lstm_with_projection": (
        "x=f32 4 3 5, h=f32 1 3 2, c=f32 1 3 6, w=f32 24 5, u=f32 24 2, b=f32 24, r=f32 2 6",
        "l = torch.lstm(x, (h, c), [w, u, b, b, r], True, 1, 0.0, False, False, False); a = l[0]; e = l[1]; f = l[2]",
        "(a, e, f)",
    ),
    "recurrent_dropout_in_training": (
        "x=f32 3 2 4, h=f32 2 2 5, w=f32 15 4, v=f32 15 5, u=f32 15 5",
        "l = torch.gru(x, h, [w, u, v, u], False, 2, 0.3, True, False, False); a = l[0]; e = l[1]",
        "(a, e)",
    ),
    "gru_and_plain_recurrence": (
        "x=f32 2 7 3, h=f32 2 2 4, w=f32 12 3, u=f32 12 4, b=f32 12, d=f32 12, s=f32 4 3, t=f32 4 4, k=f32 4",
        "l = torch.gru(x, h, [w, u, b, d, w, u, d, b], True, 1, 0.0, False, True, True); a = l[0]; e = l[1]; "
        "m = torch.rnn_tanh(x, h, [s, t, k, k, s, t, k, k], True, 1, 0.0, False, True, True); f = m[0]; g = m[1]; "
        "z = t * 0.3; n = torch.rnn_relu(x, h, [s, z, s, z], False, 1, 0.0, False, True, True); i = n[0]; j = n[1]",
        "(a, e, f, g, i, j)",
    ),
    "packed_sequences": (
        "d=f32 8 3, h=f32 2 3 4, c=f32 2 3 4, w=f32 16 3, u=f32 16 4, g=f32 12 3, k=f32 12 4, p=f32 12",
        "n = torch.tensor([3, 2, 2, 1]); l = torch.lstm(d, n, (h, c), [w, u, w, u], False, 1, 0.0, False, True); "
        "a = l[0]; e = l[1]; f = l[2]; m = torch.gru(d, n, h, [g, k, p, p, g, k, p, p], True, 1, 0.0, False, True); "
        "i = m[0]; j = m[1]",
        "(a, e, f, i, j)",
    ),
    "recurrent_cells": (
        "x=f32 2 3, h=f32 2 4, c=f32 2 4, w=f32 16 3, u=f32 16 4, b=f32 16, g=f32 12 3, k=f32 12 4, s=f32 4 3, "
        "t=f32 4 4",
        "l = torch.lstm_cell(x, (h, c), w, u, b, b); a = l[0]; e = l[1]; f = torch.gru_cell(x, h, g, k); "
        "i = torch.rnn_tanh_cell(x, h, s, t, None, None); j = torch.rnn_relu_cell(x, h, s, t)",
        "(a, e, f, i, j)",
    ),
    "losses_like_lines": (
        "x=f32 4 5, t=f32 4 5, b=f32 5, w=f32 4 5 abs, h=f16 4 5",
        "a = torch.nn.functional.smooth_l1_loss(x, t); "
        "c = torch.nn.functional.smooth_l1_loss(x, b, reduction='none', beta=0.4); "
        "d = torch.nn.functional.smooth_l1_loss(x, t, reduction='sum', beta=0.0); "
        "e = torch.nn.functional.huber_loss(x, t); "
        "f = torch.nn.functional.huber_loss(x, t, 'mean', 0.7, w); "
        "g = torch.nn.functional.huber_loss(x, b, 'none', 0.7); "
        "i = torch.nn.functional.smooth_l1_loss(h, h * 0.5, reduction='none')",
        "(a, c, d, e, f, g, i)",
    ),
    "binary_cross_entropy": (
        "x=f32 4 5, t=f32 4 5, w=f32 5 abs, v=f32 4 1 abs",
        "p = x.sigmoid(); u = t.sigmoid(); a = torch.nn.functional.binary_cross_entropy(p, u); "
        "b = torch.nn.functional.binary_cross_entropy(p, u, w, reduction='none'); "
        "h = (x > 0).float(); k = (t > 0).float(); "
        "c = torch.nn.functional.binary_cross_entropy(h, k, reduction='none'); "
        "d = torch.nn.functional.binary_cross_entropy_with_logits(x, k); "
        "e = torch.nn.functional.binary_cross_entropy_with_logits(x * 90, u, reduction='none'); "
        "f = torch.nn.functional.binary_cross_entropy_with_logits(x, u, v, reduction='sum', pos_weight=w)",
        "(a, b, c, d, e, f)",
    ),
    "nll_loss": (
        "x=f32 6 5, t=i64 6 <5, w=f32 5 abs, m=f32 2 4 3 3, n=i64 2 3 3 <4",
        "y = x.log_softmax(1); a = torch.nn.functional.nll_loss(y, t); "
        "b = torch.nn.functional.nll_loss(y, t, w, None, 2, None, 'mean'); "
        "c = torch.nn.functional.nll_loss(y, t, w, reduction='none'); "
        "d = torch.nn.functional.nll_loss(y, t, ignore_index=1, reduction='sum'); "
        "e = torch.nn.functional.nll_loss(m, n); "
        "f = torch.nn.functional.nll_loss(m, n, reduction='none'); g = torch.nn.functional.nll_loss(y[0], t[0])",
        "(a, b, c, d, e, f, g)",
    ),
    "divergences": (
        "x=f32 4 5, t=f32 4 5, v=f32 4 abs, c=f32 4 1 abs",
        "y = x.log_softmax(1); p = t.softmax(1); z = (p > 0.2).float(); "
        "a = torch.nn.functional.kl_div(y, p, reduction='batchmean'); "
        "b = torch.nn.functional.kl_div(y, z, reduction='none'); "
        "d = torch.nn.functional.kl_div(y, t, reduction='sum', log_target=True); "
        "u = t * 3; e = torch.nn.functional.poisson_nll_loss(x, u, full=True, reduction='none'); k = x.abs(); "
        "f = torch.nn.functional.poisson_nll_loss(k, u, False); g = torch.nn.functional.gaussian_nll_loss(x, t, k); "
        "h = torch.nn.functional.gaussian_nll_loss(x, t, v, True, reduction='none'); "
        "i = torch.nn.functional.gaussian_nll_loss(x, t, c, eps=0.9, reduction='sum')",
        "(a, b, d, e, f, g, h, i)",
    ),
    "margins": (
        "x=f32 4 5, y=f32 4 5, t=f32 4 5, l=i64 4 <5, w=f32 5 abs",
        "s = t.sign(); a = torch.nn.functional.soft_margin_loss(x, s); "
        "b = torch.nn.functional.soft_margin_loss(x, s, reduction='none'); "
        "c = torch.nn.functional.hinge_embedding_loss(x, s, 0.6, reduction='none'); "
        "d = torch.nn.functional.margin_ranking_loss(x, y, s, 0.2); "
        "e = torch.nn.functional.margin_ranking_loss(x, y, s, reduction='none'); "
        "f = torch.nn.functional.multi_margin_loss(x, l); "
        "g = torch.nn.functional.multi_margin_loss(x, l, 2, 0.5, w, reduction='none'); "
        "k = (s + 1) / 2; h = torch.nn.functional.multilabel_soft_margin_loss(x, k); "
        "i = torch.nn.functional.multilabel_soft_margin_loss(x, k, w, reduction='none')",
        "(a, b, c, d, e, f, g, h, i)",
    ),
    "distances_as_losses": (
        "x=f32 4 5, y=f32 4 5, z=f32 4 5, t=f32 4",
        "s = t.sign(); a = torch.nn.functional.cosine_embedding_loss(x, y, s); "
        "b = torch.nn.functional.cosine_embedding_loss(x, y, s, 0.3, reduction='none'); "
        "c = torch.nn.functional.triplet_margin_loss(x, y, z); "
        "d = torch.nn.functional.triplet_margin_loss(x, y, z, 3.0, 1.0, swap=True, reduction='none'); "
        "e = torch.nn.functional.triplet_margin_loss(x, y, z, 2.0, 3.0, 1e-6, False, None, None, 'sum')",
        "(a, b, c, d, e)",
    ),
    # Transforms of signals.
    "transforms_of_several_dimensions": (
        "x=f32 3 4 6, d=f64 4 5",
        "a = torch.fft.fft2(x); b = torch.fft.ifft2(x, dim=(0, 1)); c = torch.fft.ifftn(a, norm='ortho'); "
        "e = torch.fft.rfftn(x); f = torch.fft.irfftn(e); g = torch.fft.rfftn(d, s=(3, 6)); "
        "h = torch.fft.irfftn(g, s=(4, 7), norm='forward'); u = torch.view_as_real(a); v = torch.view_as_real(b); "
        "w = torch.view_as_real(c); y = torch.view_as_real(e.contiguous()); z = torch.view_as_real(g.contiguous())",
        "(u, v, w, y, z, f, h)",
    ),
    "short_time_transforms": (
        "x=f32 2 60, w=f32 16 abs, v=f32 11 abs, z=f64 2 40 2",
        "a = torch.stft(x, 16, 4, window=w, return_complex=True); b = torch.view_as_real(a); "
        "c = torch.stft(x[0], 16, 5, 11, v, True, 'constant', True, return_complex=False); "
        "d = torch.stft(x, 12, onesided=False, center=False, return_complex=False); k = torch.view_as_complex(z); "
        "e = torch.stft(k, 10, 3, return_complex=False); y = w + 0.5; f = torch.istft(a, 16, 4, window=y); "
        "g = torch.istft(a, 16, 4, length=50); h = torch.istft(a[1], 16, 4, 16, y, center=False, length=90); "
        "l = torch.stft(k, 10, 3, return_complex=True); "
        "m = torch.view_as_real(torch.istft(l, 10, 3, normalized=True, onesided=False, return_complex=True))",
        "(b, c, d, e, f, g, h, m)",
    ),
    "windows": (
        "x=f32 1",
        "a = torch.hamming_window(9); b = torch.hamming_window(9, False, 0.6, 0.3); c = torch.blackman_window(10); "
        "d = torch.blackman_window(7, False, dtype=torch.float64); e = torch.bartlett_window(9); "
        "f = torch.bartlett_window(8, periodic=False); g = torch.kaiser_window(12, dtype=torch.float64); "
        "h = torch.kaiser_window(9, False, 3.0); "
        "i = torch.bartlett_window(1); j = torch.kaiser_window(0)",
        "(a, b, c, d, e, f, g, h, i, j)",
    ),
    "unpooling": (
        "x=f32 2 3 6 6, y=f32 3 8, z=f32 1 2 4 4 4",
        "a, b = torch.nn.functional.max_pool2d(x, 2, return_indices=True); "
        "c = torch.nn.functional.max_unpool2d(a, b, 2); "
        "d = torch.nn.functional.max_unpool2d(a, b, 2, 2, 0, [7, 6]); "
        "e, f = torch.nn.functional.max_pool1d(y, 3, 2, 1, return_indices=True); "
        "g = torch.nn.functional.max_unpool1d(e, f, 3, 2, 1, [8]); "
        "h, i = torch.nn.functional.max_pool3d(z, 2, return_indices=True); "
        "j = torch.nn.functional.max_unpool3d(h, i, 2)",
        "(c, d, g, j)",
    ),
    "norms_of_windows": (
        "x=f32 2 3 9, y=f32 1 2 4 4 4",
        "a = torch.nn.functional.lp_pool1d(x, 2, 3); b = x.abs(); "
        "c = torch.nn.functional.lp_pool1d(b, 1.5, 3, 2, True); "
        "d = torch.nn.functional.lp_pool3d(y, 2.0, 2)",
        "(a, c, d)",
    ),
    # Functions that few models use.
    "rare_functions": (
        "x=f32 40, i=i64 6 <5, h=f16 20, d=f64 30",
        "a = torch.asinh(x); y = x.abs(); b = torch.acosh(y + 1); c = torch.atanh(torch.tanh(x)); "
        "e = torch.sinc(x * 0.7); "
        "f = torch.sinc(i); g = torch.lgamma(x); k = torch.digamma(x); l = torch.i0(d * 4); m = torch.deg2rad(x); "
        "n = torch.rad2deg(i); o = torch.nn.functional.tanhshrink(x); p = torch.asinh(h); q = torch.lgamma(i + 1)",
        "(a, b, c, e, f, g, k, l, m, n, o, p, q)",
    ),
    "rare_functions_of_two": (
        "x=f32 4 5, y=f32 5, i=i64 5 <3, d=f64 4 5, z=i64 5 <2",
        "a = torch.hypot(x, y); b = torch.copysign(x, y); c = torch.copysign(i, y); e = torch.copysign(x, -2.0); "
        "f = torch.heaviside(x.round(), x); g = torch.heaviside(i - 1, z); h = torch.logaddexp(x, y); "
        "j = torch.logaddexp2(x, y); k = torch.logaddexp(d, d); l = d / 0.0; m = torch.logaddexp(l, l)",
        "(a, b, c, e, f, g, h, j, k, m)",
    ),
    # Matrices as such.
    "inverses_and_factors": (
        "x=f64 2 3 3, y=f32 3 3, b=f64 2 3 4, v=f64 3, r=f64 4 3",
        "e = torch.eye(3, dtype=torch.float64); a = x * 0.3 + e; c = torch.linalg.inv(a); d = torch.det(x); "
        "g = y.inverse(); "
        "t = a.transpose(-2, -1); p = a @ t; h = torch.linalg.cholesky(p); i = torch.linalg.cholesky(p, upper=True); "
        "j = torch.linalg.solve(a, b); k = torch.linalg.solve(a[0], v); l = torch.linalg.solve(a[1], r, left=False); "
        "m = torch.linalg.solve_triangular(h, b, upper=False); "
        "n = torch.linalg.solve_triangular(i[0], r, upper=True, left=False); "
        "o = torch.linalg.solve_triangular(a, b, upper=True, unitriangular=True)",
        "(c, d, g, h, i, j, k, l, m, n, o)",
    ),
    "products_of_other_kinds": (
        "x=f32 2 4 5, m=f32 3 5, v=f32 5, u=f32 3, n=f32 5 2, t=f32 4 3, w=f32 4 3, i=i64 3 3 <9",
        "a = torch.inner(x, m); b = torch.addmv(u, m, v, beta=0.5, alpha=2); c = torch.addr(m, u, v, alpha=-0.3); "
        "d = torch.linalg.multi_dot([u, m, n]); e = torch.kron(t, n); f = torch.kron(v, t); g = torch.cross(t, w); "
        "h = torch.linalg.cross(t, w); j = i.trace(); k = torch.pairwise_distance(t, w); "
        "l = torch.nn.functional.pairwise_distance(m, v, 1.0, 1e-3, True)",
        "(a, b, c, d, e, f, g, h, j, k, l)",
    ),
    # Folds by rank, and others that few models use.
    "folds_by_rank": (
        "x=f32 3 7, d=f64 4 5, i=i64 6 <90",
        "q = torch.tensor([0.0, 0.25, 0.6, 1.0]); a = torch.quantile(x, 0.3, dim=1); "
        "b = torch.quantile(x, q, dim=0, keepdim=True); "
        "c = d.quantile(0.77); e = x.quantile(q, -1, interpolation='midpoint'); "
        "f = x.quantile(q, 1, interpolation='nearest'); "
        "g = torch.quantile(x, q, 1, interpolation='lower'); h = torch.quantile(x, 0.4, 0, interpolation='higher'); "
        "u = torch.log(x); j = u.quantile(0.5, 0); k, l = x.kthvalue(3); m, n = d.kthvalue(2, 0, True); "
        "o, r = i.kthvalue(4)",
        "(a, b, c, e, f, g, h, j, k, l, m, n, o, r)",
    ),
    "rare_folds": (
        "x=f32 3 6, h=f16 4 3, i=i64 6 <90, p=f32 6, c=f64 3 6",
        "u = torch.log(x); a = torch.nanmean(u, 1); b = u.nanmean(); d = h.nanmean(0, True); e, f = x.aminmax(dim=1); "
        "g, k = i.aminmax(); l = torch.logcumsumexp(x * 30, 1); m = torch.logcumsumexp(c, 0); n = u.logcumsumexp(0); "
        "o = torch.trapezoid(x); q = torch.trapezoid(x, p); r = torch.trapezoid(x, x, dim=0); "
        "s = torch.trapz(x, dx=0.3, dim=0); "
        "t = torch.nn.functional.softmin(x, dim=1)",
        "(a, b, d, e, f, g, k, l, m, n, o, q, r, s, t)",
    ),
    "shifted_frequencies": (
        "x=f32 3 4 5, n=int 7",
        "a = torch.fft.fftshift(x); b = torch.fft.ifftshift(x); c = torch.fft.fftshift(x, dim=1); "
        "d = torch.fft.ifftshift(x, dim=(0, -1)); e = torch.fft.fftfreq(n, 0.1); f = torch.fft.fftfreq(8); "
        "g = torch.fft.rfftfreq(n, d=2.0, dtype=torch.float64); h = torch.fft.rfftfreq(6)",
        "(a, b, c, d, e, f, g, h)",
    ),
    "losses_of_sequences": (
        "x=f32 9 3 6, d=f64 7 5",
        "y = x.log_softmax(2); t = torch.tensor([[1, 2, 2], [3, 3, 3], [4, 5, 1]]); i = torch.tensor([9, 4, 7]); "
        "l = torch.tensor([3, 3, 2]); a = torch.nn.functional.ctc_loss(y, t, i, l, reduction='none'); "
        "b = torch.nn.functional.ctc_loss(y, t, i, l, zero_infinity=True); f = torch.tensor([1, 2, 2, 3, 5, 4, 1, 1]); "
        "c = torch.nn.functional.ctc_loss(y, f, (9, 8, 7), (3, 1, 4), 0, 'sum'); e = d.log_softmax(1); "
        "g = torch.tensor([0, 1, 0]); "
        "h = torch.nn.functional.ctc_loss(e, g, torch.tensor(7), torch.tensor(3), blank=4)",
        "(a, b, c, h)",
    ),
    "chain_of_matrices": ("m=f32 3 5, n=f32 5 2, o=f32 2 4", "a = torch.chain_matmul(m, n, o)", "(a,)"),
}


def make_input(spec: str) -> torch.Tensor | int:
    kind, *rest = spec.split()
    if kind == "int":
        return int(rest[0])
    sizes = [int(word) for word in rest if word.isdigit()]
    if kind == "bool":
        return torch.randn(sizes) > 0.2
    limit = next((int(word[1:]) for word in rest if word.startswith("<")), None)
    if limit is not None:
        return torch.randint(0, limit, sizes, dtype=TYPES[kind])
    value = torch.randn(sizes).to(TYPES[kind])
    return value.abs() if "abs" in rest else value


def source_of(inputs: dict[str, torch.Tensor | int], body: str, result: str) -> str:
    """The text of a `model.py`, one statement a line."""
    arguments = "".join(
        f", {name}: {'torch.SymInt' if isinstance(value, int) else 'torch.Tensor'}"
        for name, value in inputs.items()
    )
    lines = []
    for number, statement in enumerate(body.split("; ")):
        call = statement.startswith("torch.")
        target = statement.split(" = ")[0]
        if " = " in statement and ", " in target and not target.endswith("]"):
            # The format unpacks by subscripts.
            names, value = target.split(", "), statement.split(" = ", 1)[1]
            lines.append(f"both_{number} = {value}")
            lines += [f"{name} = both_{number}[{i}]" for i, name in enumerate(names)]
        else:
            lines.append(f"effect_{number} = {statement}" if call else statement)
    text = "\n        ".join([*lines, f"return {result}"])
    return (
        "import torch\n\n\nclass GraphModule(torch.nn.Module):\n"
        f"    def forward(self{arguments}):\n        {text}\n"
    )


def leaves(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [torch.tensor(value, dtype=torch.int64 if isinstance(value, int) else torch.float64)]


def main() -> None:
    cases = []
    for number, (name, (inputs, body, result)) in enumerate(CASES.items()):
        torch.manual_seed(number)
        drawn = {key: make_input(spec) for key, spec in (i.split("=", 1) for i in inputs.split(", "))}
        source = source_of(drawn, body, result)
        recorded = {
            key: value if isinstance(value, int) else tensor_json(value)
            for key, value in drawn.items()
        }
        namespace: dict = {}
        exec(source, namespace)
        # The seed that random operations of a run draw from.
        torch.manual_seed(123)
        outputs = leaves(namespace["GraphModule"]().forward(**drawn))
        cases.append(
            {
                "name": name,
                "source": source,
                "inputs": recorded,
                "outputs": [tensor_json(output) for output in outputs],
            }
        )
    write("graphs.json", cases)


if __name__ == "__main__":
    main()
