class Program_weight_tensor_meta_ids:
    name = "ids"
    shape = [2, 32]
    dtype = "torch.int64"
    device = "cuda:0"
    min_val = 0
    max_val = 999
    data = None


class Program_weight_tensor_meta_types:
    name = "types"
    shape = [2, 32]
    dtype = "torch.int64"
    device = "cuda:0"
    min_val = 0
    max_val = 1
    data = None


class Program_weight_tensor_meta_words:
    name = "words"
    shape = [1000, 128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_kinds:
    name = "kinds"
    shape = [2, 128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_places:
    name = "places"
    shape = [64, 128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_g:
    name = "g"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_b:
    name = "b"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
