import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = in_0.view(1, -1, 12, 64)
        tmp_1 = tmp_0.transpose(1, 2)
        tmp_2 = tmp_1.contiguous()
        tmp_3 = tmp_2.reshape(1, 12, -1)
        return (tmp_3,)
