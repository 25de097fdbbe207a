class Program_weight_tensor_meta_gate:
	name = "in_0"
	original_name = "gate"
	shape = [2, 64, 2048]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_up:
	name = "in_1"
	original_name = "up"
	shape = [2, 64, 2048]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
