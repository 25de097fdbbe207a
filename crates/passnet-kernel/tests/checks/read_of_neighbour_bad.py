# wrapper: run
# input: x float32 [256] normal
# expect: race
import torch
import triton
import triton.language as tl


# Each program adds what the program before it left behind.
@triton.jit
def kernel(x_ptr, sums_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    total = tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)), axis=0)
    before = tl.load(sums_ptr + pid - 1, mask=pid > 0, other=0.0)
    tl.store(sums_ptr + pid, before + total)


def run(x):
    sums = torch.zeros((4,), dtype=x.dtype, device=x.device)
    kernel[(4,)](x, sums, BLOCK=64)
    return sums
