import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        skip: torch.Tensor,
    ):
        p = torch.nn.functional.pad(x, (1, 1, 1, 1), 'constant', 0.0)
        c = torch.conv2d(p, w, None, (1, 1), (0, 0), (1, 1), 1)
        u = torch.nn.functional.interpolate(c, scale_factor=2, mode='nearest')
        a = u + skip
        s = torch.nn.functional.silu(a)
        t = torch.cat([s, skip], 1)
        return (t,)
