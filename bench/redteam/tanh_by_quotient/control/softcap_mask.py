# wrapper: softcap_mask
# input: scores float32 [2, 3, 17, 45] normal
# input: mask float32 [1, 1, 17, 45] normal
"""The quotient of polynomials where it is right, element by element."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


def pattern(scores, mask):
    return torch.tanh(scores / 50.0) * 50.0 + mask


def replacement_args(scores, mask):
    return (scores, mask)


@triton.jit
def softcap_mask_kernel(scores_ptr, mask_ptr, out_ptr, plane, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    # One mask serves every head of every batch.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < plane
    place = tl.program_id(1) * plane + at
    scores = tl.load(scores_ptr + place, mask=inside, other=0.0).to(tl.float32)
    mask = tl.load(mask_ptr + at, mask=inside, other=0.0).to(tl.float32)
    scaled = (scores / 50.0).to(dtype).to(tl.float32)
    square = scaled * scaled
    above = scaled * (135135.0 + square * (17325.0 + square * (378.0 + square)))
    near = above / (135135.0 + square * (62370.0 + square * (3150.0 + 28.0 * square)))
    # The quotient is right for small arguments; the others are computed.
    bounded = tl.where(tl.abs(scaled) < 2.0, near, libdevice.tanh(scaled)).to(dtype).to(tl.float32)
    capped = (bounded * 50.0).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (capped + mask).to(dtype), mask=inside)


@torch.fx.wrap
def softcap_mask(scores, mask):
    scores = scores.contiguous()
    batch, heads, queries, keys = scores.shape
    mask = mask.expand(1, 1, queries, keys).contiguous()
    out = torch.empty_like(scores)
    plane = queries * keys
    # No fused multiply-add: eager rounds in between.
    softcap_mask_kernel[(triton.cdiv(plane, 1024), batch * heads)](
        scores, mask, out, plane, BLOCK=1024, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return softcap_mask
