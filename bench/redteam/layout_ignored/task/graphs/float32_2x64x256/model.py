import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = in_0.transpose(1, 2)
        in_0 = None
        tmp_1 = torch.nn.functional.gelu(tmp_0)
        tmp_0 = None
        tmp_2 = tmp_1 + in_1
        tmp_1 = in_1 = None
        return (tmp_2,)
