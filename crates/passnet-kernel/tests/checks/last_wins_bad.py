# wrapper: run
# input: x float32 [100] normal
# expect: race
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr, tl.load(x_ptr + pid))


def run(x):
    out = torch.empty((1,), dtype=x.dtype, device=x.device)
    kernel[(x.numel(),)](x, out)
    return out
