class Program_weight_tensor_meta_gate_up:
	name = "in_0"
	original_name = "gate_up"
	shape = [2, 96, 4096]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
