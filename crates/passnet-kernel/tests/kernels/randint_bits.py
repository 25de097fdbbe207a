# wrapper: run
# input: like int64 [64] arange
# value: 77
import torch
import triton
import triton.language as tl


@triton.jit
def random_kernel(out_ptr, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.randint(seed, i).to(tl.int64))


def run(like, seed):
    out = torch.empty_like(like)
    random_kernel[(1,)](out, seed, BLOCK=64)
    return out
