# wrapper: run
# input: x int32 [256] int 0 9
import torch
import triton
import triton.language as tl


# All programs count into the same places, and each asks what it found there.
@triton.jit
def kernel(x_ptr, counts_ptr, largest_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(counts_ptr + x, tl.full([BLOCK], 1, tl.int32))
    tl.atomic_max(largest_ptr, tl.max(x, axis=0))
    tl.store(out_ptr + pid, tl.sum(x, axis=0))


def run(x):
    counts = torch.zeros((9,), dtype=x.dtype, device=x.device)
    largest = torch.zeros((1,), dtype=x.dtype, device=x.device)
    out = torch.empty((4,), dtype=x.dtype, device=x.device)
    kernel[(4,)](x, counts, largest, out, BLOCK=64)
    return counts, largest, out
