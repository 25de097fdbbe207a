# wrapper: run
# input: x float32 [256] normal
import torch
import triton
import triton.language as tl


@triton.jit
def totals(x_ptr, sums_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    total = tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)), axis=0)
    tl.store(sums_ptr + pid, total)
    tl.store(sums_ptr + pid, tl.load(sums_ptr + pid) * 1.0)


# What another launch wrote is there for everybody.
@triton.jit
def running(sums_ptr, out_ptr):
    pid = tl.program_id(0)
    i = tl.arange(0, 4)
    before = tl.load(sums_ptr + i, mask=i <= pid, other=0.0)
    tl.store(out_ptr + pid, tl.sum(before, axis=0))


def run(x):
    sums = torch.zeros((4,), dtype=x.dtype, device=x.device)
    out = torch.empty_like(sums)
    totals[(4,)](x, sums, BLOCK=64)
    running[(4,)](sums, out)
    return out
