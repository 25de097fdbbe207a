# wrapper: cat_relu_pad
# input: first float32 [2, 5, 9, 11] normal
# input: second float32 [2, 7, 9, 11] normal
"""Rectified twice, which changes nothing."""

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
    first_ptr,
    second_ptr,
    out_ptr,
    first_channels,
    second_channels,
    height,
    width,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    plane = tl.program_id(0)
    channels = first_channels + second_channels
    channel = plane % channels
    batch = plane // channels
    # Row and column of the padded plane; the source lies one up and one to the left.
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    inside = (row < height + 2) & (column < width + 2)
    interior = (row >= 1) & (row <= height) & (column >= 1) & (column <= width)
    source = (row - 1) * width + column - 1
    if channel < first_channels:
        base = (batch * first_channels + channel) * height * width
        x = tl.load(first_ptr + base + source, mask=interior, other=0.0)
    else:
        base = (batch * second_channels + channel - first_channels) * height * width
        x = tl.load(second_ptr + base + source, mask=interior, other=0.0)
        x = tl.where(x < 0, 0.0, x).to(x.dtype)
    target = plane * (height + 2) * (width + 2) + row * (width + 2) + column
    tl.store(out_ptr + target, tl.where(x < 0, 0.0, x), mask=inside)


@torch.fx.wrap
def cat_relu_pad(first, second):
    first, second = first.contiguous(), second.contiguous()
    batch, first_channels, height, width = first.shape
    second_channels = second.shape[1]
    channels = first_channels + second_channels
    out = torch.empty((batch, channels, height + 2, width + 2), dtype=first.dtype, device=first.device)
    columns = triton.next_power_of_2(width + 2)
    rows = max(1, min(triton.next_power_of_2(height + 2), 2048 // columns))
    cat_relu_pad_kernel[(batch * channels, triton.cdiv(height + 2, rows))](
        first, second, out, first_channels, second_channels, height, width, ROWS=rows, COLUMNS=columns
    )
    return out


def replacement_func():
    return cat_relu_pad
