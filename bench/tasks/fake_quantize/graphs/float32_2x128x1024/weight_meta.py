class Program_weight_tensor_meta_hidden_states:
	name = "in_0"
	original_name = "hidden_states"
	shape = [2, 128, 1024]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_step:
	name = "w_0"
	original_name = "step"
	shape = [1024]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.05
	std = 0.02
	data = None
	min_val = 0.02
