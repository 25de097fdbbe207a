import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, w_0):
        linear = torch._C._nn.linear(in_0, w_0, None)
        chunk = linear.chunk(2, dim=-1)
        getitem = chunk[0]
        getitem_1 = chunk[1]
        silu = torch.nn.functional.silu(getitem)
        mul = silu * getitem_1
        return (mul,)
