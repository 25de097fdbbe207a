import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = in_0.chunk(2, dim=-1)
        in_0 = None
        tmp_1 = tmp_0[0]
        tmp_2 = tmp_0[1]
        tmp_0 = None
        tmp_3 = torch.nn.functional.silu(tmp_1, False)
        tmp_1 = None
        tmp_4 = tmp_2 * tmp_3
        tmp_2 = tmp_3 = None
        return (tmp_4,)
