class Program_weight_tensor_meta_query:
	name = "in_0"
	original_name = "query"
	shape = [2, 12, 128, 64]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_sin:
	name = "in_1"
	original_name = "sin"
	shape = [128, 64]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_cos:
	name = "in_2"
	original_name = "cos"
	shape = [128, 64]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
