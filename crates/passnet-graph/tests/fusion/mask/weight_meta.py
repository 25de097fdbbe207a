class Program_weight_tensor_meta_lengths:
    name = "lengths"
    shape = [4]
    dtype = "torch.int64"
    device = "cuda:0"
    min_val = 1
    max_val = 64
    data = None


class Program_weight_tensor_meta_x:
    name = "x"
    shape = [4, 64, 32]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
