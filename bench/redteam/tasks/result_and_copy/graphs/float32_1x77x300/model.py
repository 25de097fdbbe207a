import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = torch.nn.functional.silu(in_0, False)
        in_0 = None
        tmp_1 = tmp_0.clone()
        return (tmp_0, tmp_1)
