import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, in_2):
        tmp_0 = torch.nn.functional.hardsigmoid(in_0, False)
        in_0 = None
        tmp_1 = in_1 * tmp_0
        in_1 = tmp_0 = None
        tmp_2 = tmp_1 + in_2
        tmp_1 = in_2 = None
        return (tmp_2,)
