# wrapper: channel_shuffle
# input: x float32 [2, 12, 9, 11] normal
# value: 2
"""All of the block is asked whether it holds NaN."""

import torch
import triton
import triton.language as tl


def pattern(x, batch, groups, per_group, height, width, channels):
    rectified = torch.nn.functional.relu(x, inplace=False)
    grouped = rectified.view(batch, groups, per_group, height, width)
    return torch.transpose(grouped, 1, 2).contiguous().view(batch, channels, height, width)


def replacement_args(x, batch, groups, per_group, height, width, channels):
    return (x, groups)


@triton.jit
def channel_shuffle_kernel(x_ptr, out_ptr, channels, groups, pixels, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    channel = plane % channels
    # Output channel k * groups + g is channel k of group g.
    source = plane - channel + channel % groups * (channels // groups) + channel // groups
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    x = tl.load(x_ptr + source * pixels + pixel, mask=inside, other=0.0)
    # Blocks with NaN anywhere take the slower way.
    rectified = tl.maximum(x, 0.0).to(x.dtype)
    if tl.sum((x != x).to(tl.int32), axis=0) > 0:
        rectified = tl.where(x < 0, 0.0, x).to(x.dtype)
    tl.store(out_ptr + plane * pixels + pixel, rectified, mask=inside)


@torch.fx.wrap
def channel_shuffle(x, groups):
    x = x.contiguous()
    out = torch.empty_like(x)
    batch, channels, height, width = x.shape
    pixels = height * width
    block = min(triton.next_power_of_2(pixels), 1024)
    channel_shuffle_kernel[(batch * channels, triton.cdiv(pixels, block))](
        x, out, channels, groups, pixels, BLOCK=block
    )
    return out


def replacement_func():
    return channel_shuffle
