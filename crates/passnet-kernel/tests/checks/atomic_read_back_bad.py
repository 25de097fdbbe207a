# wrapper: run
# input: x int32 [256] int 0 9
# expect: race
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, sum_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(sum_ptr, tl.sum(x, axis=0))
    tl.store(out_ptr + pid, tl.load(sum_ptr))


def run(x):
    total = torch.zeros((1,), dtype=x.dtype, device=x.device)
    out = torch.empty((4,), dtype=x.dtype, device=x.device)
    kernel[(4,)](x, total, out, BLOCK=64)
    return out
