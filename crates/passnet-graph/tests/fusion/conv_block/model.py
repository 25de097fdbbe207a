import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        w1: torch.Tensor,
        w2: torch.Tensor,
        c2: torch.Tensor,
        m1: torch.Tensor,
        v1: torch.Tensor,
        g1: torch.Tensor,
        b1: torch.Tensor,
        m2: torch.Tensor,
        v2: torch.Tensor,
        g2: torch.Tensor,
        b2: torch.Tensor,
    ):
        a = torch.conv2d(x, w1, None, (1, 1), (0, 0), (1, 1), 1)
        n = torch.nn.functional.batch_norm(a, m1, v1, g1, b1, False, 0.1, 1e-05)
        r = torch.nn.functional.relu(n, inplace=True)
        c = torch.conv2d(r, w2, c2, (1, 1), (1, 1), (1, 1), 1)
        d = torch.nn.functional.batch_norm(c, m2, v2, g2, b2, False, 0.1, 1e-05)
        s = d + r
        o = torch.nn.functional.relu(s)
        p = torch.nn.functional.max_pool2d(o, 2, 2)
        return (p,)
