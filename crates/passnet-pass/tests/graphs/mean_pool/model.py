import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = in_1.unsqueeze(-1)
        tmp_1 = tmp_0.expand(1, 16, 384)
        tmp_2 = tmp_1.float()
        tmp_3 = in_0 * tmp_2
        tmp_4 = tmp_3.sum(1)
        tmp_5 = tmp_2.sum(1)
        tmp_6 = torch.clamp(tmp_5, min=1e-09)
        tmp_7 = tmp_4 / tmp_6
        return (tmp_7,)
