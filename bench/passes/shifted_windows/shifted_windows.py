# wrapper: shifted_windows
# input: x float32 [2, 14, 14, 20] normal
# value: -3
# value: -3
# value: 7
"""Swin's cyclic shift and window partition: six operations that only move data, done by one gather of whole rows."""

import torch
import triton
import triton.language as tl


def pattern(x, up, left, batch, down, size, across, channels, area):
    rolled = torch.roll(x, shifts=(up, left), dims=(1, 2))
    blocks = rolled.view(batch, down, size, across, size, channels)
    windows = blocks.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, channels)
    return windows.view(-1, area, channels)


def replacement_args(x, up, left, batch, down, size, across, channels, area):
    return (x, up, left, size)


@triton.jit
def shifted_windows_kernel(x_ptr, out_ptr, height, width, channels, up, left, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    # One program moves one row of one window: SIZE neighbouring pixels, all channels of each.
    program = tl.program_id(0)
    window = program // SIZE
    across = width // SIZE
    down = height // SIZE
    batch = window // across // down
    y = (window // across % down * SIZE + program % SIZE + height - up) % height
    first_x = window % across * SIZE + width - left
    channel = tl.arange(0, BLOCK)
    inside = channel < channels
    for pixel in range(0, SIZE):
        x = (first_x + pixel) % width
        source = ((batch * height + y) * width + x) * channels
        target = (program * SIZE + pixel) * channels
        tl.store(out_ptr + target + channel, tl.load(x_ptr + source + channel, mask=inside), mask=inside)


@torch.fx.wrap
def shifted_windows(x, up, left, size):
    x = x.contiguous()
    batch, height, width, channels = x.shape
    windows = batch * (height // size) * (width // size)
    out = torch.empty((windows, size * size, channels), dtype=x.dtype, device=x.device)
    shifted_windows_kernel[(windows * size,)](
        x,
        out,
        height,
        width,
        channels,
        up % height,
        left % width,
        SIZE=size,
        BLOCK=triton.next_power_of_2(channels),
    )
    return out


def replacement_func():
    return shifted_windows
