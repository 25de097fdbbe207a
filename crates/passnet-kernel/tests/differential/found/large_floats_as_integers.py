# wrapper: run
# input: in0 float32 [2048] int 0 2
import torch
import triton
import triton.language as tl


# Numbers beyond 32 bits, one for all lanes and one for each.
@triton.jit
def kernel(in0, out0, out1):
    pid = tl.program_id(0)
    i = tl.arange(0, 16)
    alone = tl.load(in0 + pid)
    tl.store(out0 + pid, alone.to(tl.int32))
    each = tl.load(in0 + pid + i * 0) + i.to(tl.float32) * 0.0
    tl.store(out1 + pid * 16 + i, each.to(tl.int32))


def run(in0):
    out0 = torch.zeros((512,), dtype=torch.int32, device=in0.device)
    out1 = torch.zeros((8192,), dtype=torch.int32, device=in0.device)
    kernel[(512,)](in0, out0, out1)
    return out0, out1
