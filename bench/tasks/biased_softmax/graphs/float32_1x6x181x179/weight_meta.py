class Program_weight_tensor_meta_scores:
	name = "in_0"
	original_name = "scores"
	shape = [1, 6, 181, 179]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_position_bias:
	name = "in_1"
	original_name = "position_bias"
	shape = [1, 6, 181, 179]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
