import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, in_2):
        tmp_0 = in_0[Ellipsis, slice(None, None, 2)]
        tmp_1 = in_0[Ellipsis, slice(1, None, 2)]
        tmp_2 = -tmp_1
        tmp_1 = None
        tmp_3 = torch.stack([tmp_2, tmp_0], -1)
        tmp_2 = tmp_0 = None
        tmp_4 = tmp_3.reshape(1, 12, 196, 64)
        tmp_3 = None
        tmp_5 = in_0 * in_2
        in_0 = in_2 = None
        tmp_6 = tmp_4 * in_1
        tmp_4 = in_1 = None
        tmp_7 = tmp_5 + tmp_6
        tmp_5 = tmp_6 = None
        return (tmp_7,)
