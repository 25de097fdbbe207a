import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
    ):
        m = x.mean(-1, keepdim=True)
        c = x - m
        q = c * c
        v = q.mean(-1, keepdim=True)
        s = x.sum()
        k = x.max(dim=-1)
        i = k[1]
        a = torch.argmax(c, dim=0)
        t = v + s
        return (i, a, t)
