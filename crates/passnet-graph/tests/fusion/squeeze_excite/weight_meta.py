class Program_weight_tensor_meta_x:
    name = "x"
    shape = [2, 48, 14, 14]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_dw:
    name = "dw"
    shape = [48, 1, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_m:
    name = "m"
    shape = [48]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_v:
    name = "v"
    shape = [48]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_g:
    name = "g"
    shape = [48]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_b:
    name = "b"
    shape = [48]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w1:
    name = "w1"
    shape = [12, 48, 1, 1]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_c1:
    name = "c1"
    shape = [12]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w2:
    name = "w2"
    shape = [48, 12, 1, 1]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_c2:
    name = "c2"
    shape = [48]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
