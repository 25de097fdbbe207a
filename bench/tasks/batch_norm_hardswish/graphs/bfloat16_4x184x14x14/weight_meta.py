class Program_weight_tensor_meta_conv_output:
	name = "in_0"
	original_name = "conv_output"
	shape = [4, 184, 14, 14]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_running_mean:
	name = "w_0"
	original_name = "running_mean"
	shape = [184]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_running_var:
	name = "w_1"
	original_name = "running_var"
	shape = [184]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None
	min_val = 0.1


class Program_weight_tensor_meta_weight:
	name = "w_2"
	original_name = "weight"
	shape = [184]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_bias:
	name = "w_3"
	original_name = "bias"
	shape = [184]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None
