import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, w_0, w_1, w_2, w_3):
        tmp_0 = torch.nn.functional.batch_norm(in_0, w_0, w_1, w_2, w_3, False, 0.01, 0.001)
        in_0 = w_0 = w_1 = w_2 = w_3 = None
        tmp_1 = torch.nn.functional.hardswish(tmp_0, True)
        tmp_0 = None
        return (tmp_1,)
