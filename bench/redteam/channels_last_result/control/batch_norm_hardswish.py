# wrapper: batch_norm_hardswish
# input: x float16 [2, 10, 9, 11] normal
# input: mean float16 [10] normal
# input: variance float16 [10] uniform 0.5 2
# input: weight float16 [10] normal
# input: bias float16 [10] normal
"""Two views that undo each other."""

import torch
import triton
import triton.language as tl


def pattern(x, mean, variance, weight, bias):
    normed = torch.nn.functional.batch_norm(x, mean, variance, weight, bias, False, 0.01, 0.001)
    return torch.nn.functional.hardswish(normed, True)


def replacement_args(x, mean, variance, weight, bias):
    return (x, mean, variance, weight, bias)


@triton.jit
def batch_norm_hardswish_kernel(
    x_ptr, mean_ptr, variance_ptr, weight_ptr, bias_ptr, out_ptr, channels, pixels, BLOCK: tl.constexpr
):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    channel = plane % channels
    scale = tl.load(weight_ptr + channel).to(tl.float32)
    scale = scale / tl.sqrt(tl.load(variance_ptr + channel).to(tl.float32) + 0.001)
    mean = tl.load(mean_ptr + channel).to(tl.float32)
    bias = tl.load(bias_ptr + channel).to(tl.float32)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    place = plane * pixels + pixel
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    normed = ((x - mean) * scale + bias).to(dtype).to(tl.float32)
    gate = tl.minimum(tl.maximum(normed + 3.0, 0.0), 6.0)
    tl.store(out_ptr + place, (normed * gate / 6.0).to(dtype), mask=inside)


@torch.fx.wrap
def batch_norm_hardswish(x, mean, variance, weight, bias):
    x, mean, variance = x.contiguous(), mean.contiguous(), variance.contiguous()
    weight, bias = weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    batch, channels = x.shape[:2]
    planes = batch * channels
    pixels = x.numel() // planes
    block = min(triton.next_power_of_2(pixels), 1024)
    batch_norm_hardswish_kernel[(planes, triton.cdiv(pixels, block))](
        x, mean, variance, weight, bias, out, channels, pixels, BLOCK=block
    )
    return out.permute(0, 2, 3, 1).permute(0, 3, 1, 2)


def replacement_func():
    return batch_norm_hardswish
