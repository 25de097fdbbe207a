import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        g: torch.Tensor,
        b: torch.Tensor,
        w: torch.Tensor,
        c: torch.Tensor,
        t: torch.Tensor,
    ):
        n = torch.nn.functional.group_norm(x, 8, g, b, 1e-05)
        s = torch.nn.functional.silu(n)
        h = torch.conv2d(s, w, c, (1, 1), (1, 1), (1, 1), 1)
        u = t[(slice(None, None, None), slice(None, None, None), None, None)]
        o = h + u
        r = o + x
        return (r,)
