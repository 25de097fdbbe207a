import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = torch.nn.functional.silu(in_0, False)
        tmp_1 = torch.nn.functional.softmax(in_0, dim=-1)
        tmp_2 = tmp_0 * in_0
        tmp_0 = in_0 = None
        return (tmp_2,)
