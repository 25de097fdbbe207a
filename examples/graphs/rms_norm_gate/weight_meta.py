class Program_weight_tensor_meta_in_0:
	name = "in_0"
	shape = [4, 128, 256]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 1.0
	data = None


class Program_weight_tensor_meta_in_1:
	name = "in_1"
	shape = [4, 128, 256]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 1.0
	data = None


class Program_weight_tensor_meta_w_0:
	name = "w_0"
	shape = [256]
	dtype = "torch.float16"
	device = "cpu"
	mean = 1.0
	std = 0.1
	data = None
