# wrapper: layer_scale_add
# input: x float32 [2, 9, 11, 40] normal
# input: gamma float32 [40] normal
# input: shortcut float32 [2, 40, 9, 11] normal
"""Every program reads back what it wrote itself."""

import torch
import triton
import triton.language as tl


def pattern(x, gamma, shortcut):
    return shortcut + (x * gamma).permute(0, 3, 1, 2)


def replacement_args(x, gamma, shortcut):
    return (x, gamma, shortcut)


@triton.jit
def layer_scale_add_kernel(
    x_ptr, gamma_ptr, shortcut_ptr, out_ptr, channels, pixels, PIXELS: tl.constexpr, CHANNELS: tl.constexpr
):
    dtype = out_ptr.dtype.element_ty
    batch = tl.program_id(2)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    # Read along channels, write along pixels.
    readable = (pixel[:, None] < pixels) & (channel[None, :] < channels)
    source = (batch * pixels + pixel[:, None]) * channels + channel[None, :]
    x = tl.load(x_ptr + source, mask=readable, other=0.0).to(tl.float32)
    gamma = tl.load(gamma_ptr + channel, mask=channel < channels, other=0.0).to(tl.float32)
    scaled = tl.trans((x * gamma[None, :]).to(dtype)).to(tl.float32)
    writable = (channel[:, None] < channels) & (pixel[None, :] < pixels)
    target = (batch * channels + channel[:, None]) * pixels + pixel[None, :]
    shortcut = tl.load(shortcut_ptr + target, mask=writable, other=0.0).to(tl.float32)
    result = (shortcut + scaled).to(dtype)
    tl.store(out_ptr + target, result, mask=writable)
    tl.store(out_ptr + target, tl.load(out_ptr + target, mask=writable, other=0.0), mask=writable)


@torch.fx.wrap
def layer_scale_add(x, gamma, shortcut):
    x, gamma = x.contiguous(), gamma.contiguous()
    batch, height, width, channels = x.shape
    shortcut = shortcut.expand(batch, channels, height, width).contiguous()
    out = torch.empty_like(shortcut)
    pixels = height * width
    grid = (triton.cdiv(pixels, 32), triton.cdiv(channels, 64), batch)
    layer_scale_add_kernel[grid](
        x, gamma, shortcut, out, channels, pixels, PIXELS=32, CHANNELS=64
    )
    return out


def replacement_func():
    return layer_scale_add
