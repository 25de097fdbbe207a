import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
        z: torch.Tensor,
    ):
        a = x + 1
        b = x * y
        c = torch.relu(z)
        d = torch.exp(a)
        e = c * 2
        f = d - b
        return (a, b, e, f)
