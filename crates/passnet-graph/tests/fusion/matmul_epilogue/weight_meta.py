class Program_weight_tensor_meta_x:
    name = "x"
    shape = [128, 256]
    dtype = "torch.float16"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w:
    name = "w"
    shape = [256, 512]
    dtype = "torch.float16"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_b:
    name = "b"
    shape = [512]
    dtype = "torch.float16"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w2:
    name = "w2"
    shape = [512, 64]
    dtype = "torch.float16"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
