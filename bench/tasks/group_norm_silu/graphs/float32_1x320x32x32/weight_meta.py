class Program_weight_tensor_meta_sample:
	name = "in_0"
	original_name = "sample"
	shape = [1, 320, 32, 32]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_norm_weight:
	name = "w_0"
	original_name = "norm_weight"
	shape = [320]
	dtype = "torch.float32"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_norm_bias:
	name = "w_1"
	original_name = "norm_bias"
	shape = [320]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None
