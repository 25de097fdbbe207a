class Program_weight_tensor_meta_x:
    name = "x"
    shape = [16, 64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
