import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, w_0):
        tmp_0 = in_0.norm(p=2, dim=-1, keepdim=True)
        tmp_1 = in_0 / tmp_0
        in_0 = tmp_0 = None
        tmp_2 = w_0.exp()
        w_0 = None
        tmp_3 = tmp_1 * tmp_2
        tmp_1 = tmp_2 = None
        return (tmp_3,)
