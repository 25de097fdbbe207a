import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, w_0, w_1):
        tmp_0 = in_0.norm(p=2, dim=(1, 2), keepdim=True)
        tmp_1 = tmp_0.mean(dim=-1, keepdim=True)
        tmp_2 = tmp_1 + 1e-06
        tmp_1 = None
        tmp_3 = tmp_0 / tmp_2
        tmp_0 = tmp_2 = None
        tmp_4 = in_0 * tmp_3
        tmp_3 = None
        tmp_5 = torch.addcmul(w_1, w_0, tmp_4)
        w_1 = w_0 = tmp_4 = None
        tmp_6 = in_0 + tmp_5
        in_0 = tmp_5 = None
        return (tmp_6,)
