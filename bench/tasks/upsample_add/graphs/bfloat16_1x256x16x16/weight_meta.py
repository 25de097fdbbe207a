class Program_weight_tensor_meta_coarse:
	name = "in_0"
	original_name = "coarse"
	shape = [1, 256, 16, 16]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_lateral:
	name = "in_1"
	original_name = "lateral"
	shape = [1, 256, 32, 32]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
