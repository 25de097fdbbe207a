import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = in_0.ne(1)
        in_0 = None
        tmp_1 = tmp_0.unsqueeze(-1)
        tmp_0 = None
        tmp_2 = tmp_1.type_as(in_1)
        tmp_1 = None
        tmp_3 = torch.nn.functional.silu(in_1, False)
        in_1 = None
        tmp_4 = tmp_3 * tmp_2
        tmp_3 = tmp_2 = None
        return (tmp_4,)
