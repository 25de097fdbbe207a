class Program_weight_tensor_meta_features:
	name = "in_0"
	original_name = "features"
	shape = [1, 28, 28, 384]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_gamma:
	name = "w_0"
	original_name = "gamma"
	shape = [384]
	dtype = "torch.float16"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_shortcut:
	name = "in_1"
	original_name = "shortcut"
	shape = [1, 384, 28, 28]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
