# wrapper: run
# input: x float32 [64] normal
# expect: output-aliases-input
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr):
    pid = tl.program_id(0)
    own = tl.load(x_ptr + pid, mask=pid < 63, other=0.0)
    tl.store(x_ptr + pid, own * 2.0)
    tl.store(x_ptr + pid, tl.load(x_ptr + pid) + 1.0)


def run(x):
    kernel[(64,)](x)
    return x
