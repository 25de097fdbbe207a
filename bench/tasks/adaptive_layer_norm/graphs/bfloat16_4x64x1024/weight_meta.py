class Program_weight_tensor_meta_hidden_states:
	name = "in_0"
	original_name = "hidden_states"
	shape = [4, 64, 1024]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_scale:
	name = "in_1"
	original_name = "scale"
	shape = [4, 1024]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 1.0
	data = None


class Program_weight_tensor_meta_shift:
	name = "in_2"
	original_name = "shift"
	shape = [4, 1024]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 1.0
	data = None
