# wrapper: patch_tokens
# input: patches float32 [2, 50, 5, 5] normal
# input: class_token float32 [1, 1, 50] normal
# input: positions float32 [1, 26, 50] normal
"""Patches to tokens: the transposition goes through a tile, the class token is row zero, positions come on top."""

import torch
import triton
import triton.language as tl


def pattern(patches, class_token, positions, batch):
    tokens = patches.flatten(2).transpose(1, 2)
    first = class_token.expand(batch, -1, -1)
    return torch.cat((first, tokens), dim=1) + positions


def replacement_args(patches, class_token, positions, batch):
    return (patches, class_token, positions)


@triton.jit
def patch_tokens_kernel(
    patch_ptr, class_ptr, position_ptr, out_ptr, channels, pixels, TOKENS: tl.constexpr, CHANNELS: tl.constexpr
):
    dtype = out_ptr.dtype.element_ty
    batch = tl.program_id(2)
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    # Read along pixels, write along channels.
    wide = channel[:, None] < channels
    is_patch = (token >= 1) & (token <= pixels)
    source = (batch * channels + channel[:, None]) * pixels + token[None, :] - 1
    patches = tl.trans(tl.load(patch_ptr + source, mask=wide & is_patch[None, :], other=0.0)).to(tl.float32)
    known = channel[None, :] < channels
    inside = known & (token[:, None] <= pixels)
    first = tl.load(class_ptr + channel[None, :], mask=known, other=0.0).to(tl.float32)
    place = token[:, None] * channels + channel[None, :]
    position = tl.load(position_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tokens = tl.where(token[:, None] == 0, first, patches)
    target = out_ptr + batch * (pixels + 1) * channels + place
    tl.store(target, (tokens + position).to(dtype), mask=inside)


@torch.fx.wrap
def patch_tokens(patches, class_token, positions):
    patches, class_token = patches.contiguous(), class_token.contiguous()
    batch, channels, height, width = patches.shape
    pixels = height * width
    positions = positions.expand(1, pixels + 1, channels).contiguous()
    out = torch.empty((batch, pixels + 1, channels), dtype=patches.dtype, device=patches.device)
    grid = (triton.cdiv(pixels + 1, 32), triton.cdiv(channels, 128), batch)
    patch_tokens_kernel[grid](
        patches, class_token, positions, out, channels, pixels, TOKENS=32, CHANNELS=128
    )
    return out


def replacement_func():
    return patch_tokens
