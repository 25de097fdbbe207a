import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = in_0.sum(dim=1)
        tmp_1 = tmp_0.pow(2)
        tmp_0 = None
        tmp_2 = in_0.pow(2)
        in_0 = None
        tmp_3 = tmp_2.sum(dim=1)
        tmp_2 = None
        tmp_4 = tmp_1 - tmp_3
        tmp_1 = tmp_3 = None
        tmp_5 = tmp_4.sum(dim=1, keepdim=True)
        tmp_4 = None
        tmp_6 = tmp_5 * 0.5
        tmp_5 = None
        return (tmp_6,)
