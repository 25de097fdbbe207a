# wrapper: temperature_log_softmax
# input: logits bfloat16 [9, 300] normal
"""A workspace of this call: written first, then read."""

import torch
import triton
import triton.language as tl


def pattern(logits):
    scaled = logits.to(torch.float32) / 0.7
    return torch.nn.functional.log_softmax(scaled, -1, 3, None)


def replacement_args(logits):
    return (logits,)


@triton.jit
def temperature_log_softmax_kernel(logit_ptr, out_ptr, kept_ptr, width, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < width
    place = tl.program_id(0) * width + column
    logit = tl.load(logit_ptr + place, mask=inside, other=float("-inf")).to(tl.float32)
    # Rounded before anything is subtracted: a compiler may make one step of an ordinary quotient and a difference.
    scaled = tl.div_rn(logit, 0.7)
    top = tl.max(scaled, axis=0)
    total = tl.log(tl.sum(tl.exp(scaled - top), axis=0))
    # The statistics go through memory of this call, written before they are read.
    tl.store(kept_ptr + tl.program_id(0) * 2, top)
    tl.store(kept_ptr + tl.program_id(0) * 2 + 1, total)
    tl.store(out_ptr + place, scaled - top - total, mask=inside)


@torch.fx.wrap
def temperature_log_softmax(logits):
    logits = logits.contiguous()
    out = torch.empty(logits.shape, dtype=torch.float32, device=logits.device)
    width = logits.shape[-1]
    rows = logits.numel() // width
    kept = torch.empty((rows, 2), dtype=torch.float32, device=logits.device)
    temperature_log_softmax_kernel[(rows,)](
        logits, out, kept, width, BLOCK=triton.next_power_of_2(width), num_warps=8
    )
    return out


def replacement_func():
    return temperature_log_softmax
