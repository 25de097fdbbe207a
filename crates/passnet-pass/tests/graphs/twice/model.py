import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, in_2):
        add = in_0 + in_1
        relu = torch.relu(add)
        add_1 = relu + in_2
        relu_1 = torch.relu(add_1)
        return (relu_1,)
