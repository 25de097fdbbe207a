import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = torch.nn.functional.gelu(in_0)
        in_0 = None
        tmp_1 = tmp_0.view(-1)
        tmp_1 *= 2.0
        tmp_2 = tmp_1
        tmp_1 = None
        tmp_3 = tmp_0 + in_1
        tmp_0 = in_1 = None
        return (tmp_3,)
