import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = in_0 == -1.0
        tmp_1 = torch.nn.functional.silu(in_0, False)
        in_0 = None
        tmp_2 = tmp_1.masked_fill(tmp_0, 0.0)
        tmp_1 = tmp_0 = None
        return (tmp_2,)
