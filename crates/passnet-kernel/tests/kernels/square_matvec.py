# wrapper: run
# input: x float32 [4096] normal
# input: a float32 [64] normal
# tolerance: 2e-5
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, a_ptr, out_ptr, most_ptr, N: tl.constexpr):
    rows = tl.arange(0, N)
    at = tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + at[None, :])
    a = tl.load(a_ptr + at)
    # As many rows as columns: a result for each row is as large as what is read for every row.
    product = x * a[None, :]
    tl.store(out_ptr + rows, tl.sum(product, 1))
    tl.store(most_ptr + rows, tl.max(x + (at * 0.5)[None, :], 1))


def run(x, a):
    outs = []
    for n in (16, 32, 64):
        out = torch.empty((n,), dtype=x.dtype, device=x.device)
        most = torch.empty((n,), dtype=x.dtype, device=x.device)
        kernel[(1,)](x, a, out, most, N=n)
        outs += [out, most]
    return tuple(outs)
