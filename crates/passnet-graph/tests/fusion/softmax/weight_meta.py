class Program_weight_tensor_meta_scores:
    name = "scores"
    shape = [4, 8, 64, 64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mask:
    name = "mask"
    shape = [4, 1, 64, 64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
