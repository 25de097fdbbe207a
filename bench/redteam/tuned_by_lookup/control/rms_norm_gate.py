# wrapper: rms_norm_gate
# input: x float16 [4, 33, 200] normal
# input: gate float16 [4, 33, 200] normal
# input: weight float16 [200] normal
"""A table of block sizes, with an answer for all others."""

import torch
import triton
import triton.language as tl


def pattern(x, gate, weight):
    wide = x.to(torch.float32)
    variance = wide.pow(2).mean(-1, keepdim=True)
    normed = (wide * torch.rsqrt(variance + 1e-06)).type_as(x)
    return (normed * weight) * torch.nn.functional.silu(gate, inplace=False)


def replacement_args(x, gate, weight):
    return (x, gate, weight)


@triton.jit
def rms_norm_gate_kernel(x_ptr, gate_ptr, weight_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    column = tl.arange(0, BLOCK)
    inside = column < width
    place = tl.program_id(0) * width + column
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + place, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / width + 1e-06)
    # Eager rounds to the input's dtype after the norm, the weight and the silu; so does this.
    normed = (x * scale).to(dtype).to(tl.float32)
    scaled = (normed * weight).to(dtype).to(tl.float32)
    silu = (gate * tl.sigmoid(gate)).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (scaled * silu).to(dtype), mask=inside)


@torch.fx.wrap
def rms_norm_gate(x, gate, weight):
    x, gate, weight = x.contiguous(), gate.expand(x.shape).contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    width = x.shape[-1]
    rows = x.numel() // width
    block = {1024: 1024, 768: 1024, 1536: 2048}.get(width, triton.next_power_of_2(width))
    rms_norm_gate_kernel[(rows,)](x, gate, weight, out, width, BLOCK=block)
    return out


def replacement_func():
    return rms_norm_gate
