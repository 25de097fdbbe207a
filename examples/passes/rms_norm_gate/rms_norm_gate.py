# wrapper: rms_norm_gate
# input: x float16 [4, 128, 256] normal
# input: gate float16 [4, 128, 256] normal
# input: weight float16 [256] normal
"""RMS norm in float32, scaled by a weight and gated by silu: ten operations, one kernel.

Eager reads and writes the tensor ten times; the kernel reads each row once and writes it once.
"""

import torch
import triton
import triton.language as tl


def pattern(x, gate, weight):
    wide = x.to(torch.float32)
    variance = wide.pow(2).mean(-1, keepdim=True)
    scaled = wide * torch.rsqrt(variance + 1e-06)
    normed = weight * scaled.to(torch.float16)
    return normed * torch.nn.functional.silu(gate, inplace=False)


def replacement_args(x, gate, weight):
    return (x, gate, weight)


@triton.jit
def rms_norm_gate_kernel(x_ptr, gate_ptr, weight_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < width
    place = row * width + column
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / width + 1e-06)
    # Eager rounds to half before and after the weight; so does this.
    normed = (x * scale).to(tl.float16)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0)
    gate = tl.load(gate_ptr + place, mask=inside, other=0.0).to(tl.float32)
    silu = (gate * tl.sigmoid(gate)).to(tl.float16)
    tl.store(out_ptr + place, weight * normed * silu, mask=inside)


@torch.fx.wrap
def rms_norm_gate(x, gate, weight):
    width = x.shape[-1]
    out = torch.empty_like(x)
    rows = x.numel() // width
    rms_norm_gate_kernel[(rows,)](x, gate, weight, out, width, BLOCK=triton.next_power_of_2(width))
    return out


def replacement_func():
    return rms_norm_gate
