# wrapper: run
# input: in0 float64 [2048] int 0 2
import torch
import triton
import triton.language as tl


# The same number leaves one branch as a block and as a number.
@triton.jit
def kernel(in0, out0, out1, n):
    i = tl.arange(0, 8)
    same = tl.load(in0 + i * 0)
    twice = same + same
    a = same
    b = twice
    if n > 9:
        a = tl.load(in0 + i)
        b = b + same
    else:
        a = twice
        b = twice
    tl.store(out0 + i, a)
    tl.store(out1 + i, b)


def run(in0):
    out0 = torch.zeros((8,), dtype=torch.float64, device=in0.device)
    out1 = torch.zeros((8,), dtype=torch.float64, device=in0.device)
    kernel[(1,)](in0, out0, out1, 5)
    return out0, out1
