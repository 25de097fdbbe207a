import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        b: torch.Tensor,
    ):
        a = torch.nn.functional.avg_pool2d(x, 2, 2)
        r = torch.relu(a)
        m = torch.nn.functional.max_pool2d(r, 3, 2, 1, 1, ceil_mode=False, return_indices=False)
        s = m * 2
        g = torch.nn.functional.adaptive_avg_pool2d(s, (1, 1))
        f = torch.flatten(g, 1)
        o = torch._C._nn.linear(f, w, b)
        p = torch.nn.functional.softmax(o, dim=1)
        return (p,)
