import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = in_0.to(torch.float32)
        in_0 = None
        tmp_1 = tmp_0 / 0.7
        tmp_0 = None
        tmp_2 = torch.nn.functional.log_softmax(tmp_1, -1, 3, None)
        tmp_1 = None
        return (tmp_2,)
