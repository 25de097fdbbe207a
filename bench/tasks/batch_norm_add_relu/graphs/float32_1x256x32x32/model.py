import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, w_0, w_1, w_2, w_3):
        tmp_0 = torch.nn.functional.batch_norm(in_0, w_0, w_1, w_2, w_3, False, 0.1, 1e-05)
        in_0 = w_0 = w_1 = w_2 = w_3 = None
        tmp_0 += in_1
        in_1 = None
        tmp_1 = tmp_0
        tmp_0 = None
        tmp_2 = torch.nn.functional.relu(tmp_1, inplace=True)
        tmp_1 = None
        return (tmp_2,)
