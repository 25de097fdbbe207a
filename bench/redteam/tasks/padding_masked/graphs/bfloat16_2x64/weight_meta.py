class Program_weight_tensor_meta_input_ids:
	name = "in_0"
	original_name = "input_ids"
	shape = [2, 64]
	dtype = "torch.int64"
	device = "cpu"
	mean = None
	std = None
	data = None
	min_val = 0
	max_val = 30522


class Program_weight_tensor_meta_hidden_states:
	name = "in_1"
	original_name = "hidden_states"
	shape = [2, 64, 512]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
