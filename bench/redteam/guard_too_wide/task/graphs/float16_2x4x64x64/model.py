import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = in_0 / 0.25
        in_0 = None
        tmp_1 = tmp_0 + in_1
        tmp_0 = in_1 = None
        tmp_2 = torch.nn.functional.softmax(tmp_1, -1, 3, None)
        tmp_1 = None
        tmp_3 = torch.nn.functional.dropout(tmp_2, 0.1, False, False)
        tmp_2 = None
        return (tmp_3,)
