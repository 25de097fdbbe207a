import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, in_2):
        tmp_0 = in_1 * in_2
        in_1 = in_2 = None
        tmp_1 = in_0 * 0.125
        in_0 = None
        tmp_2 = tmp_1 + tmp_0
        tmp_1 = tmp_0 = None
        tmp_3 = torch.nn.functional.softmax(tmp_2, -1, 3, None)
        tmp_2 = None
        return (tmp_3,)
