import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, w_0, w_1):
        tmp_0 = in_0.flatten(2)
        in_0 = None
        tmp_1 = tmp_0.transpose(1, 2)
        tmp_0 = None
        tmp_2 = w_0.expand(2, -1, -1)
        w_0 = None
        tmp_3 = torch.cat((tmp_2, tmp_1), dim=1)
        tmp_2 = tmp_1 = None
        tmp_4 = tmp_3 + w_1
        tmp_3 = w_1 = None
        return (tmp_4,)
