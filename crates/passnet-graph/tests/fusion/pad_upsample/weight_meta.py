class Program_weight_tensor_meta_x:
    name = "x"
    shape = [2, 16, 14, 14]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w:
    name = "w"
    shape = [16, 16, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_skip:
    name = "skip"
    shape = [2, 16, 28, 28]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
