import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        matmul = in_0 @ in_1
        transpose = matmul.transpose(1, 2)
        cat = torch.cat((transpose, transpose), dim=-1)
        cos = cat.cos()
        sin = cat.sin()
        mul = cos * 1.0
        mul_1 = sin * 1.0
        return (mul, mul_1)
