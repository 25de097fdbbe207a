class Program_weight_tensor_meta_x:
    name = "x"
    shape = [32, 1024]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
