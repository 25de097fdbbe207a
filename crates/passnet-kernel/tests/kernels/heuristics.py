# wrapper: run
# input: x float32 [17, 33] normal
import torch
import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["N"])})
@triton.jit
def negate_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + row * N + i, -tl.load(x_ptr + row * N + i, mask=i < N), mask=i < N)


def run(x):
    out = torch.empty_like(x)
    negate_kernel[(x.shape[0],)](x, out, x.shape[1])
    return out
