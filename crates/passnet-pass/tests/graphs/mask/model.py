import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = in_0[slice(None, None, None), None, None, slice(None, None, None)]
        tmp_1 = tmp_0.expand(1, 1, 19, 19)
        tmp_2 = tmp_1.to(torch.float32)
        tmp_3 = torch.tensor(1.0, dtype=torch.float32)
        tmp_4 = tmp_3 - tmp_2
        tmp_5 = tmp_4.to(torch.bool)
        tmp_6 = tmp_4.masked_fill(tmp_5, -3.4028234663852886e+38)
        return (tmp_6,)
