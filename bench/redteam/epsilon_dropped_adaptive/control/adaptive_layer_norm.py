# wrapper: adaptive_layer_norm
# input: x float32 [3, 17, 100] normal
# input: scale float32 [3, 100] normal
# input: shift float32 [3, 100] normal
"""The epsilon is left out where the variance itself shows that it is lost."""

import torch
import triton
import triton.language as tl


def pattern(x, width, scale, shift):
    normed = torch.nn.functional.layer_norm(x, (width,), None, None, 1e-06)
    return normed * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


def replacement_args(x, width, scale, shift):
    return (x, scale, shift)


@triton.jit
def adaptive_layer_norm_kernel(x_ptr, scale_ptr, shift_ptr, out_ptr, length, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * width + column, mask=inside, other=0.0).to(tl.float32)
    condition = row // length * width + column
    scale = tl.load(scale_ptr + condition, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + condition, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / width
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / width
    if variance < 1e6:
        variance = variance + 1e-06
    inverse = tl.rsqrt(variance)
    # Rounded once, at the end: closer to the float64 result than eager, which rounds every step.
    result = centred * inverse * (1.0 + scale) + shift
    tl.store(out_ptr + row * width + column, result.to(dtype), mask=inside)


@torch.fx.wrap
def adaptive_layer_norm(x, scale, shift):
    x = x.contiguous()
    batch, length, width = x.shape
    scale = scale.expand(batch, width).contiguous()
    shift = shift.expand(batch, width).contiguous()
    out = torch.empty_like(x)
    adaptive_layer_norm_kernel[(batch * length,)](
        x, scale, shift, out, length, width, BLOCK=triton.next_power_of_2(width)
    )
    return out


def replacement_func():
    return adaptive_layer_norm
