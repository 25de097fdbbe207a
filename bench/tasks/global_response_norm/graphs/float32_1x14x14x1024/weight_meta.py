class Program_weight_tensor_meta_features:
	name = "in_0"
	original_name = "features"
	shape = [1, 14, 14, 1024]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_weight:
	name = "w_0"
	original_name = "weight"
	shape = [1024]
	dtype = "torch.float32"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_bias:
	name = "w_1"
	original_name = "bias"
	shape = [1024]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None
