import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        clone = in_0.clone()
        view = clone.view(-1)
        view += in_1
        tmp_0 = view
        relu = clone.relu()
        exp = tmp_0.exp()
        return (relu, exp)
