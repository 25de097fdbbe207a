import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        q: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
    ):
        c = cos.unsqueeze(1)
        s = sin.unsqueeze(1)
        a = q * c
        l = q[..., slice(None, 16, None)]
        h = q[..., slice(16, None, None)]
        n = -h
        r = torch.cat((n, l), dim=-1)
        m = r * s
        o = a + m
        return (o,)
