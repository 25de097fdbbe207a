import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        b: torch.Tensor,
        w2: torch.Tensor,
    ):
        m = torch.matmul(x, w)
        a = m + b
        r = torch.relu(a)
        s = torch.mm(r, w2)
        return (s,)
