import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = torch.nn.functional.relu(in_0, False)
        in_0 = None
        tmp_1 = tmp_0.view(4, 2, 116, 14, 14)
        tmp_0 = None
        tmp_2 = torch.transpose(tmp_1, 1, 2)
        tmp_1 = None
        tmp_3 = tmp_2.contiguous()
        tmp_2 = None
        tmp_4 = tmp_3.view(4, 232, 14, 14)
        tmp_3 = None
        return (tmp_4,)
