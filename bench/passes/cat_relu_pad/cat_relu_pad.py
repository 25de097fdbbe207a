# wrapper: cat_relu_pad
# input: first float32 [2, 5, 9, 11] normal
# input: second float32 [2, 7, 9, 11] normal
"""Concatenation, ReLU and zero padding. Each output plane comes from one input plane; its border is never read."""

import torch
import triton
import triton.language as tl


def pattern(first, second):
    joined = torch.cat([first, second], dim=1)
    rectified = torch.nn.functional.relu(joined, inplace=False)
    return torch.nn.functional.pad(rectified, (1, 1, 1, 1), "constant", 0)


def replacement_args(first, second):
    return (first, second)


@triton.jit
def cat_relu_pad_kernel(
    first_ptr, second_ptr, out_ptr, first_channels, second_channels, height, width, BLOCK: tl.constexpr
):
    plane = tl.program_id(0)
    channels = first_channels + second_channels
    channel = plane % channels
    batch = plane // channels
    padded_width = width + 2
    pixels = (height + 2) * padded_width
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    row = pixel // padded_width - 1
    column = pixel % padded_width - 1
    interior = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    source = row * width + column
    if channel < first_channels:
        base = (batch * first_channels + channel) * height * width
        x = tl.load(first_ptr + base + source, mask=interior, other=0.0)
    else:
        base = (batch * second_channels + channel - first_channels) * height * width
        x = tl.load(second_ptr + base + source, mask=interior, other=0.0)
    tl.store(out_ptr + plane * pixels + pixel, tl.where(x < 0, 0.0, x), mask=inside)


@torch.fx.wrap
def cat_relu_pad(first, second):
    first, second = first.contiguous(), second.contiguous()
    batch, first_channels, height, width = first.shape
    second_channels = second.shape[1]
    channels = first_channels + second_channels
    out = torch.empty((batch, channels, height + 2, width + 2), dtype=first.dtype, device=first.device)
    pixels = (height + 2) * (width + 2)
    block = min(triton.next_power_of_2(pixels), 1024)
    cat_relu_pad_kernel[(batch * channels, triton.cdiv(pixels, block))](
        first, second, out, first_channels, second_channels, height, width, BLOCK=block
    )
    return out


def replacement_func():
    return cat_relu_pad
