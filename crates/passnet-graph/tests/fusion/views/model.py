import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
    ):
        a = x.flatten(2)
        b = a.transpose(1, 2)
        c = b + 1
        d = c.permute(0, 2, 1)
        e = d.contiguous()
        f = e.view(4, 16, 8, 8)
        g = f.reshape(4, 4, 4, 64)
        h = g.transpose(1, 2)
        i = h.reshape(4, 16, 64)
        return (i,)
