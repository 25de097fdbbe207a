import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1, in_2, w_0, w_1, w_2, w_3, w_4):
        tmp_0 = torch.nn.functional.embedding(in_0, w_0, 0, None, 2.0, False, False)
        in_0 = w_0 = None
        tmp_1 = torch.nn.functional.embedding(in_2, w_2, None, None, 2.0, False, False)
        in_2 = w_2 = None
        tmp_2 = tmp_0 + tmp_1
        tmp_0 = tmp_1 = None
        tmp_3 = torch.nn.functional.embedding(in_1, w_1, None, None, 2.0, False, False)
        in_1 = w_1 = None
        tmp_4 = tmp_2 + tmp_3
        tmp_2 = tmp_3 = None
        tmp_5 = torch.nn.functional.layer_norm(tmp_4, (768,), w_3, w_4, 1e-12)
        tmp_4 = w_3 = w_4 = None
        return (tmp_5,)
