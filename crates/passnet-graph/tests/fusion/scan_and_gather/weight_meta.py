class Program_weight_tensor_meta_ids:
    name = "ids"
    shape = [2, 32]
    dtype = "torch.int64"
    device = "cuda:0"
    min_val = 0
    max_val = 99
    data = None


class Program_weight_tensor_meta_x:
    name = "x"
    shape = [2, 32, 16]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
