class Program_weight_tensor_meta_hidden_states:
	name = "in_0"
	original_name = "hidden_states"
	shape = [1, 131, 1536]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_gate:
	name = "in_1"
	original_name = "gate"
	shape = [1, 131, 1536]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_norm_weight:
	name = "w_0"
	original_name = "norm_weight"
	shape = [1536]
	dtype = "torch.float32"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None
