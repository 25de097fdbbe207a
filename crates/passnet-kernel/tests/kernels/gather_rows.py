# wrapper: run
# tolerance: 0
# input: table float32 [50, 24] normal
# input: index int64 [17] int 0 50
import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(table_ptr, index_ptr, out_ptr, D, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    row = tl.load(index_ptr + i)
    d = tl.arange(0, BLOCK)
    x = tl.load(table_ptr + row * D + d, mask=d < D)
    tl.store(out_ptr + i * D + d, x, mask=d < D)


def run(table, index):
    n, D = index.numel(), table.shape[1]
    out = torch.empty((n, D), dtype=table.dtype, device=table.device)
    gather_kernel[(n,)](table, index, out, D, BLOCK=triton.next_power_of_2(D))
    return out
