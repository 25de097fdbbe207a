# wrapper: run
# input: a float32 [6, 32] uniform 0.5 1
# input: b float32 [6, 32] normal
# tolerance: 1e-5
import torch
import triton
import triton.language as tl


@triton.jit
def first_order(al, bl, ar, br):
    return al * ar, ar * bl + br


@triton.jit
def scan_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    _, h = tl.associative_scan((tl.load(a_ptr + at), tl.load(b_ptr + at)), 0, first_order)
    tl.store(out_ptr + at, h)


def run(a, b):
    out = torch.empty_like(b)
    scan_kernel[(a.shape[0],)](a, b, out, N=a.shape[1])
    return out
