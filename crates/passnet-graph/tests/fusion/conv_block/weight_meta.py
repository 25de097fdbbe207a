class Program_weight_tensor_meta_x:
    name = "x"
    shape = [2, 32, 28, 28]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w1:
    name = "w1"
    shape = [64, 32, 1, 1]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w2:
    name = "w2"
    shape = [64, 64, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_c2:
    name = "c2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_m1:
    name = "m1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_v1:
    name = "v1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_g1:
    name = "g1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_b1:
    name = "b1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_m2:
    name = "m2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_v2:
    name = "v2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_g2:
    name = "g2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_b2:
    name = "b2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
