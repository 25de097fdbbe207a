import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, in_2, in_3):
        transpose = in_1.transpose(-1, -2)
        matmul = torch.matmul(in_0, transpose);  transpose = None
        truediv = matmul / 8.0;  matmul = None
        add = truediv + in_3;  truediv = None
        softmax = torch.nn.functional.softmax(add, dim = -1);  add = None
        dropout = torch.nn.functional.dropout(softmax, 0.1, False, False);  softmax = None
        matmul_1 = torch.matmul(dropout, in_2);  dropout = None
        return (matmul_1,)
