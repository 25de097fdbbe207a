# wrapper: run
# input: in0 float16 [2048] int 0 2
import torch
import triton
import triton.language as tl


# A bias in half precision is widened and added to every row.
@triton.jit
def kernel(in0, out0):
    m = tl.arange(0, 8)
    n = tl.arange(0, 16)
    x = tl.load(in0 + 100 + m[:, None] * 16 + n[None, :]).to(tl.float32)
    y = x + tl.load(in0 + n)[None, :].to(tl.float32)
    tl.store(out0 + m[:, None] * 16 + n[None, :], y)


def run(in0):
    out0 = torch.zeros((128,), dtype=torch.float32, device=in0.device)
    kernel[(1,)](in0, out0)
    return out0
