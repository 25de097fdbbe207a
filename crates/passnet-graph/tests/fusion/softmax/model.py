import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        scores: torch.Tensor,
        mask: torch.Tensor,
    ):
        a = scores * 0.125
        b = a + mask
        c = torch.nn.functional.softmax(b, dim=-1)
        d = torch.nn.functional.dropout(c, 0.1, False, False)
        e = d * 2
        return (e,)
