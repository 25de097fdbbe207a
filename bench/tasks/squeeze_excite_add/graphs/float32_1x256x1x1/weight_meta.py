class Program_weight_tensor_meta_gate_logits:
	name = "in_0"
	original_name = "gate_logits"
	shape = [1, 256, 1, 1]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_features:
	name = "in_1"
	original_name = "features"
	shape = [1, 256, 32, 32]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_shortcut:
	name = "in_2"
	original_name = "shortcut"
	shape = [1, 256, 32, 32]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
