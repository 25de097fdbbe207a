class Program_weight_tensor_meta_gate_logits:
	name = "in_0"
	original_name = "gate_logits"
	shape = [8, 160, 1, 1]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_features:
	name = "in_1"
	original_name = "features"
	shape = [8, 160, 14, 14]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_shortcut:
	name = "in_2"
	original_name = "shortcut"
	shape = [8, 160, 14, 14]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
