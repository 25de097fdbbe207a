class Program_weight_tensor_meta_x:
    name = "x"
    shape = [2, 64, 28, 28]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w:
    name = "w"
    shape = [16, 64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_b:
    name = "b"
    shape = [16]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
