class Program_weight_tensor_meta_features:
	name = "in_0"
	original_name = "features"
	shape = [2, 28, 28, 192]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_gamma:
	name = "w_0"
	original_name = "gamma"
	shape = [192]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_shortcut:
	name = "in_1"
	original_name = "shortcut"
	shape = [2, 192, 28, 28]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
