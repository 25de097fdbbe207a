import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        g: torch.Tensor,
        w: torch.Tensor,
    ):
        f = x.to(torch.float32)
        p = f.pow(2)
        m = p.mean(-1, keepdim=True)
        e = m + 1e-06
        r = torch.rsqrt(e)
        n = f * r
        t = n.to(torch.bfloat16)
        o = g * t
        q = torch._C._nn.linear(o, w, None)
        return (q,)
