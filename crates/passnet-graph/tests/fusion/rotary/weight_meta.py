class Program_weight_tensor_meta_q:
    name = "q"
    shape = [2, 4, 64, 32]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_cos:
    name = "cos"
    shape = [1, 64, 32]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_sin:
    name = "sin"
    shape = [1, 64, 32]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
