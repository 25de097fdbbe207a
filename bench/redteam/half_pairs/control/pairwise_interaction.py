# wrapper: pairwise_interaction
# input: x float32 [19, 13, 20] normal
"""Squares of magnitudes."""

import torch
import triton
import triton.language as tl


def pattern(x):
    square_of_sum = x.sum(dim=1).pow(2)
    sum_of_squares = x.pow(2).sum(dim=1)
    return (square_of_sum - sum_of_squares).sum(dim=1, keepdim=True) * 0.5


def replacement_args(x):
    return (x,)


@triton.jit
def pairwise_interaction_kernel(x_ptr, out_ptr, fields, width, FIELDS: tl.constexpr, WIDTH: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    sample = tl.program_id(0)
    field = tl.arange(0, FIELDS)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    inside = (field < fields) & (column < width)
    place = (sample * fields + field) * width + column
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    total = tl.sum(x, axis=0).to(dtype).to(tl.float32)
    square_of_sum = (total * total).to(dtype).to(tl.float32)
    squares = tl.abs(x) * tl.abs(x)
    sum_of_squares = tl.sum(squares.to(dtype).to(tl.float32), axis=0).to(dtype).to(tl.float32)
    difference = (square_of_sum - sum_of_squares).to(dtype).to(tl.float32)
    pairs = tl.sum(difference, axis=0).to(dtype).to(tl.float32)
    tl.store(out_ptr + sample, (pairs * 0.5).to(dtype))


@torch.fx.wrap
def pairwise_interaction(x):
    x = x.contiguous()
    samples, fields, width = x.shape
    out = torch.empty((samples, 1), dtype=x.dtype, device=x.device)
    # No fused multiply-add: eager rounds in between.
    pairwise_interaction_kernel[(samples,)](
        x,
        out,
        fields,
        width,
        FIELDS=triton.next_power_of_2(fields),
        WIDTH=triton.next_power_of_2(width),
        enable_fp_fusion=False,
    )
    return out


def replacement_func():
    return pairwise_interaction
