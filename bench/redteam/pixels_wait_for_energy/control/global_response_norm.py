# wrapper: global_response_norm
# input: x float32 [2, 9, 11, 100] normal
# input: weight float32 [100] normal
# input: bias float32 [100] normal
"""Three launches: each waits for the one before."""

import torch
import triton
import triton.language as tl


def pattern(x, weight, bias):
    energy = x.norm(p=2, dim=(1, 2), keepdim=True)
    share = energy / (energy.mean(dim=-1, keepdim=True) + 1e-06)
    return x + torch.addcmul(bias, weight, x * share)


def replacement_args(x, weight, bias):
    return (x, weight, bias)


@triton.jit
def energy_kernel(x_ptr, energy_ptr, pixels, channels, BLOCK: tl.constexpr):
    dtype = energy_ptr.dtype.element_ty
    batch = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for pixel in range(0, pixels):
        x = tl.load(x_ptr + (batch * pixels + pixel) * channels + channel, mask=inside, other=0.0).to(tl.float32)
        total += x * x
    tl.store(energy_ptr + batch * channels + channel, tl.sqrt(total).to(dtype), mask=inside)


@triton.jit
def share_kernel(energy_ptr, share_ptr, channels, BLOCK: tl.constexpr):
    dtype = share_ptr.dtype.element_ty
    channel = tl.arange(0, BLOCK)
    inside = channel < channels
    place = tl.program_id(0) * channels + channel
    energy = tl.load(energy_ptr + place, mask=inside, other=0.0).to(tl.float32)
    mean = (tl.sum(energy, axis=0) / channels).to(dtype).to(tl.float32)
    mean = (mean + 1e-06).to(dtype).to(tl.float32)
    tl.store(share_ptr + place, (energy / mean).to(dtype), mask=inside)


@triton.jit
def respond_kernel(x_ptr, share_ptr, weight_ptr, bias_ptr, out_ptr, pixels, channels, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    pixel = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    place = pixel * channels + channel
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    share = tl.load(share_ptr + pixel // pixels * channels + channel, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + channel, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + channel, mask=inside, other=0.0).to(tl.float32)
    weighed = (x * share).to(dtype).to(tl.float32)
    response = (bias + weight * weighed).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (x + response).to(dtype), mask=inside)


@torch.fx.wrap
def global_response_norm(x, weight, bias):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    batch, height, width, channels = x.shape
    pixels = height * width
    energy = torch.empty((batch, channels), dtype=x.dtype, device=x.device)
    share = torch.empty((batch, channels), dtype=x.dtype, device=x.device)
    out = torch.empty_like(x)
    block = min(triton.next_power_of_2(channels), 256)
    columns = triton.cdiv(channels, block)
    energy_kernel[(batch, columns)](x, energy, pixels, channels, BLOCK=block)
    share_kernel[(batch,)](energy, share, channels, BLOCK=triton.next_power_of_2(channels))
    respond_kernel[(batch * pixels, columns)](x, share, weight, bias, out, pixels, channels, BLOCK=block)
    return out


def replacement_func():
    return global_response_norm
