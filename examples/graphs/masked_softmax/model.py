import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, in_2):
        tmp_0 = torch.matmul(in_0, in_1)
        in_0 = in_1 = None
        tmp_1 = tmp_0 * 0.125
        tmp_0 = None
        tmp_2 = tmp_1.masked_fill(in_2, -3.4028234663852886e+38)
        tmp_1 = in_2 = None
        tmp_3 = torch.nn.functional.softmax(tmp_2, dim=-1)
        tmp_2 = None
        tmp_4 = torch.nn.functional.dropout(tmp_3, p=0.1, training=False)
        tmp_3 = None
        return (tmp_4,)
