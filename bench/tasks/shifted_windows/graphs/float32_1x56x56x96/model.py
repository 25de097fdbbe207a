import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0):
        tmp_0 = torch.roll(in_0, shifts=(-3, -3), dims=(1, 2))
        in_0 = None
        tmp_1 = tmp_0.view(1, 8, 7, 8, 7, 96)
        tmp_0 = None
        tmp_2 = tmp_1.permute(0, 1, 3, 2, 4, 5)
        tmp_1 = None
        tmp_3 = tmp_2.contiguous()
        tmp_2 = None
        tmp_4 = tmp_3.view(-1, 7, 7, 96)
        tmp_3 = None
        tmp_5 = tmp_4.view(-1, 49, 96)
        tmp_4 = None
        return (tmp_5,)
