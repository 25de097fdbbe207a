class Program_weight_tensor_meta_x:
    name = "x"
    shape = [4, 262144]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_y:
    name = "y"
    shape = [4, 262144]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
