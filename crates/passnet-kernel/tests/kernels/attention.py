# wrapper: run
# input: q float32 [2, 32, 16] normal
# input: k float32 [2, 32, 16] normal
# input: v float32 [2, 32, 16] normal
# tolerance: 1e-5
import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, S, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = head * S * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + base + n[None, :] * D + d[:, None])
        scores = tl.dot(q, k) * scale
        scores = tl.where(m[:, None] >= n[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new_top[:, None])
        alpha = tl.exp(top - new_top)
        v = tl.load(v_ptr + base + n[:, None] * D + d[None, :])
        acc = acc * alpha[:, None] + tl.dot(p, v)
        total = total * alpha + tl.sum(p, axis=1)
        top = new_top
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], acc / total[:, None])


def run(q, k, v):
    H, S, D = q.shape
    out = torch.empty_like(q)
    attention_kernel[(S // 16, H)](q, k, v, out, S, D**-0.5, BM=16, BN=16, D=D)
    return out
