# wrapper: run
# input: x float32 [2048, 4096] normal
import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    gate = tl.load(x_ptr + row * 2 * N + cols, mask=mask)
    up = tl.load(x_ptr + row * 2 * N + N + cols, mask=mask)
    tl.store(out_ptr + row * N + cols, gate * tl.sigmoid(gate) * up, mask=mask)


def run(x):
    M, N2 = x.shape
    N = N2 // 2
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    swiglu_kernel[(M, triton.cdiv(N, 1024))](x, out, N, BLOCK=1024)
    return out


def reference(x):
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up
