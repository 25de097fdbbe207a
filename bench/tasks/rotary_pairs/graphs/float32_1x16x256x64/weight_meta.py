class Program_weight_tensor_meta_query:
	name = "in_0"
	original_name = "query"
	shape = [1, 16, 256, 64]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_sin:
	name = "in_1"
	original_name = "sin"
	shape = [256, 64]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_cos:
	name = "in_2"
	original_name = "cos"
	shape = [256, 64]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
