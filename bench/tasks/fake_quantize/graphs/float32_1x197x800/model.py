import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, w_0):
        tmp_0 = in_0 / w_0
        in_0 = None
        tmp_1 = torch.round(tmp_0)
        tmp_0 = None
        tmp_2 = torch.clamp(tmp_1, -128, 127)
        tmp_1 = None
        tmp_3 = tmp_2 * w_0
        tmp_2 = w_0 = None
        return (tmp_3,)
