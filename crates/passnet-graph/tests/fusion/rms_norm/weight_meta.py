class Program_weight_tensor_meta_x:
    name = "x"
    shape = [4, 128, 512]
    dtype = "torch.bfloat16"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_g:
    name = "g"
    shape = [512]
    dtype = "torch.bfloat16"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w:
    name = "w"
    shape = [768, 512]
    dtype = "torch.bfloat16"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
