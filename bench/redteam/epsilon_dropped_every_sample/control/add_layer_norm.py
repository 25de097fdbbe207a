# wrapper: add_layer_norm
# input: x float32 [5, 23, 300] normal
# input: residual float32 [5, 23, 300] normal
# input: weight float32 [300] normal
# input: bias float32 [300] normal
"""Residual addition and layer norm in one kernel; both the sum and the normalised sum are returned.

`width` stands for whatever normalised size the graph writes, so the pass serves every hidden size.
"""

import torch
import triton
import triton.language as tl


def pattern(x, residual, width, weight, bias):
    total = residual + x
    return total, torch.nn.functional.layer_norm(total, (width,), weight, bias, 1e-05)


def replacement_args(x, residual, width, weight, bias):
    return (x, residual, weight, bias)


@triton.jit
def add_layer_norm_kernel(x_ptr, residual_ptr, weight_ptr, bias_ptr, sum_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    column = tl.arange(0, BLOCK)
    inside = column < width
    place = tl.program_id(0) * width + column
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    # The sum is a result of its own: what is normalised is its rounded value.
    total = (residual + x).to(dtype)
    tl.store(sum_ptr + place, total, mask=inside)
    total = total.to(tl.float32)
    mean = tl.sum(total, axis=0) / width
    centred = tl.where(inside, total - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / width + 1e-05)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + place, (centred * scale * weight + bias).to(dtype), mask=inside)


@torch.fx.wrap
def add_layer_norm(x, residual, weight, bias):
    x, residual = x.contiguous(), residual.expand(x.shape).contiguous()
    weight, bias = weight.contiguous(), bias.contiguous()
    total = torch.empty_like(x)
    out = torch.empty_like(x)
    width = x.shape[-1]
    rows = x.numel() // width
    add_layer_norm_kernel[(rows,)](
        x, residual, weight, bias, total, out, width, BLOCK=triton.next_power_of_2(width)
    )
    return total, out


def replacement_func():
    return add_layer_norm
