import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = in_0.masked_fill(in_1, -10000.0)
        in_0 = None
        tmp_1 = torch.softmax(tmp_0, -1)
        tmp_0 = None
        tmp_2 = tmp_1.masked_fill(in_1, 0)
        tmp_1 = in_1 = None
        return (tmp_2,)
