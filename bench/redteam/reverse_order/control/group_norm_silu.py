# wrapper: group_norm_silu
# input: x float32 [2, 96, 9, 11] normal
# input: weight float32 [96] normal
# input: bias float32 [96] normal
# value: 32
"""Each program reads back its own scale."""

import torch
import triton
import triton.language as tl


def pattern(x, weight, bias):
    return torch.nn.functional.silu(torch.nn.functional.group_norm(x, 32, weight, bias, 1e-06), inplace=False)


def replacement_args(x, weight, bias):
    return (x, weight, bias, 32)


@triton.jit
def group_norm_silu_kernel(x_ptr, weight_ptr, bias_ptr, scale_ptr, out_ptr, groups, channels, pixels, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    program = tl.program_id(0)
    size = channels * pixels
    start = program * size
    first_channel = program % groups * channels
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for offset in range(0, size, BLOCK):
        inside = offset + lane < size
        total += tl.load(x_ptr + start + offset + lane, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / size
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for offset in range(0, size, BLOCK):
        inside = offset + lane < size
        x = tl.load(x_ptr + start + offset + lane, mask=inside, other=0.0).to(tl.float32)
        centred = tl.where(inside, x - mean, 0.0)
        squares += centred * centred
    tl.store(scale_ptr + program, tl.rsqrt(tl.sum(squares, axis=0) / size + 1e-06))
    scale = tl.load(scale_ptr + program)
    for channel in range(0, channels):
        weight = tl.load(weight_ptr + first_channel + channel).to(tl.float32) * scale
        bias = tl.load(bias_ptr + first_channel + channel).to(tl.float32)
        plane = start + channel * pixels
        for offset in range(0, pixels, BLOCK):
            inside = offset + lane < pixels
            x = tl.load(x_ptr + plane + offset + lane, mask=inside, other=0.0).to(tl.float32)
            normed = ((x - mean) * weight + bias).to(dtype).to(tl.float32)
            tl.store(out_ptr + plane + offset + lane, (normed * tl.sigmoid(normed)).to(dtype), mask=inside)


@torch.fx.wrap
def group_norm_silu(x, weight, bias, groups):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    scales = torch.zeros((x.shape[0] * groups,), dtype=torch.float32, device=x.device)
    batch, channels = x.shape[:2]
    pixels = x.numel() // (batch * channels)
    group_norm_silu_kernel[(batch * groups,)](
        x, weight, bias, scales, out, groups, channels // groups, pixels, BLOCK=1024
    )
    return out


def replacement_func():
    return group_norm_silu
