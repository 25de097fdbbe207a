class Program_weight_tensor_meta_scores:
	name = "in_0"
	original_name = "scores"
	shape = [2, 8, 128, 128]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_slopes:
	name = "in_1"
	original_name = "slopes"
	shape = [8, 1, 1]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.25
	std = 0.5
	data = None


class Program_weight_tensor_meta_positions:
	name = "in_2"
	original_name = "positions"
	shape = [1, 1, 128]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
