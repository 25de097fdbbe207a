# wrapper: run
# input: in0 int32 [2048] int 0 2
import torch
import triton
import triton.language as tl


# Numbers of 64 bits without a sign, the larger half of which looks negative.
@triton.jit
def kernel(in0, out0, out1, out2, out3):
    x = tl.load(in0 + tl.arange(0, 64)).to(tl.uint64)
    tl.store(out0, tl.max(x, axis=0).to(tl.int64))
    tl.store(out1, tl.min(x, axis=0).to(tl.int64))
    tl.store(out2, tl.argmax(x, axis=0))
    tl.store(out3 + tl.arange(0, 64), tl.sort(x).to(tl.int64))


def run(in0):
    out0 = torch.zeros((1,), dtype=torch.int64, device=in0.device)
    out1 = torch.zeros((1,), dtype=torch.int64, device=in0.device)
    out2 = torch.zeros((1,), dtype=torch.int32, device=in0.device)
    out3 = torch.zeros((64,), dtype=torch.int64, device=in0.device)
    kernel[(1,)](in0, out0, out1, out2, out3)
    return out0, out1, out2, out3
