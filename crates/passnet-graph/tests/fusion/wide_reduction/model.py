import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ):
        d = x - y
        q = d * d
        m = q.mean(-1)
        r = torch.sqrt(m)
        t = r.mean()
        a = q + 1
        return (t, a)
