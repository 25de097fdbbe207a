import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, w_0):
        tmp_0 = in_0.to(torch.float32)
        tmp_1 = tmp_0.pow(2)
        tmp_2 = tmp_1.mean(-1, keepdim=True)
        tmp_1 = None
        tmp_3 = tmp_2 + 1e-06
        tmp_2 = None
        tmp_4 = torch.rsqrt(tmp_3)
        tmp_3 = None
        tmp_5 = tmp_0 * tmp_4
        tmp_0 = tmp_4 = None
        tmp_6 = tmp_5.type_as(in_0)
        tmp_5 = in_0 = None
        tmp_7 = tmp_6 * w_0
        tmp_6 = w_0 = None
        tmp_8 = torch.nn.functional.silu(in_1, False)
        in_1 = None
        tmp_9 = tmp_7 * tmp_8
        tmp_7 = tmp_8 = None
        return (tmp_9,)
