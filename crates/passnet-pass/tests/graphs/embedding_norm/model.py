import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, w_0, w_1):
        tmp_0 = torch.nn.functional.dropout(in_0, 0.1, False, False)
        tmp_1 = tmp_0 + in_1
        tmp_0 = None
        tmp_2 = torch.nn.functional.layer_norm(tmp_1, (768,), w_0, w_1, 1e-12)
        return (tmp_2, tmp_1)
