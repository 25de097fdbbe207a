# wrapper: run
# input: x float32 [64] normal
# expect: output-aliases-input race
import torch
import triton
import triton.language as tl


# In place, with a neighbour's element: in the order of the programs it is still there, in another it is not.
@triton.jit
def kernel(x_ptr):
    pid = tl.program_id(0)
    next = tl.load(x_ptr + pid + 1, mask=pid < 63, other=0.0)
    tl.store(x_ptr + pid, next * 2.0)


def run(x):
    kernel[(64,)](x)
    return x
