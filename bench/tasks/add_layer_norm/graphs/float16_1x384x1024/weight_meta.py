class Program_weight_tensor_meta_attention_output:
	name = "in_0"
	original_name = "attention_output"
	shape = [1, 384, 1024]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_residual:
	name = "in_1"
	original_name = "residual"
	shape = [1, 384, 1024]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_norm_weight:
	name = "w_0"
	original_name = "norm_weight"
	shape = [1024]
	dtype = "torch.float16"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_norm_bias:
	name = "w_1"
	original_name = "norm_bias"
	shape = [1024]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None
