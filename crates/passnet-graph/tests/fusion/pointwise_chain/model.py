import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        b: torch.Tensor,
    ):
        a = x * w
        c = a + b
        d = torch.nn.functional.gelu(c)
        e = torch.sigmoid(d)
        f = d * e
        return (f,)
