import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        ids: torch.Tensor,
        x: torch.Tensor,
    ):
        m = ids.ne(1)
        i = m.int()
        c = torch.cumsum(i, dim=1)
        t = c.type_as(i)
        p = t * i
        l = p.long()
        k = x.sum(-1)
        o = torch.topk(k, 4, dim=-1)
        j = o[1]
        u = j.unsqueeze(-1)
        e = u.expand(-1, -1, 16)
        g = x.gather(1, e)
        return (l, g)
