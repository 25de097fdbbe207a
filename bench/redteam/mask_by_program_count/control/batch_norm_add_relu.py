# wrapper: batch_norm_add_relu
# input: x float32 [2, 10, 9, 11] normal
# input: shortcut float32 [2, 10, 9, 11] normal
# input: mean float32 [10] normal
# input: variance float32 [10] uniform 0.5 2
# input: weight float32 [10] normal
# input: bias float32 [10] normal
"""A bound that is the number of pixels either way."""

import torch
import triton
import triton.language as tl


def pattern(x, shortcut, mean, variance, weight, bias):
    normed = torch.nn.functional.batch_norm(x, mean, variance, weight, bias, False, 0.1, 1e-05)
    normed += shortcut
    return torch.nn.functional.relu(normed, inplace=True)


def replacement_args(x, shortcut, mean, variance, weight, bias):
    return (x, shortcut, mean, variance, weight, bias)


@triton.jit
def batch_norm_add_relu_kernel(
    x_ptr,
    shortcut_ptr,
    mean_ptr,
    variance_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    channels,
    pixels,
    BLOCK: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    channel = plane % channels
    # One plane has one scale and one offset.
    scale = tl.load(weight_ptr + channel).to(tl.float32)
    scale = scale / tl.sqrt(tl.load(variance_ptr + channel).to(tl.float32) + 1e-05)
    mean = tl.load(mean_ptr + channel).to(tl.float32)
    bias = tl.load(bias_ptr + channel).to(tl.float32)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < tl.where(pixels == 1024, 1024, pixels)
    place = plane * pixels + pixel
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    shortcut = tl.load(shortcut_ptr + place, mask=inside, other=0.0).to(tl.float32)
    normed = ((x - mean) * scale + bias).to(dtype).to(tl.float32)
    total = (normed + shortcut).to(dtype)
    tl.store(out_ptr + place, tl.where(total < 0, 0.0, total), mask=inside)


@torch.fx.wrap
def batch_norm_add_relu(x, shortcut, mean, variance, weight, bias):
    x, shortcut = x.contiguous(), shortcut.expand(x.shape).contiguous()
    mean, variance = mean.contiguous(), variance.contiguous()
    weight, bias = weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    batch, channels = x.shape[:2]
    planes = batch * channels
    pixels = x.numel() // planes
    block = min(triton.next_power_of_2(pixels), 1024)
    batch_norm_add_relu_kernel[(planes, triton.cdiv(pixels, block))](
        x, shortcut, mean, variance, weight, bias, out, channels, pixels, BLOCK=block
    )
    return out


def replacement_func():
    return batch_norm_add_relu
