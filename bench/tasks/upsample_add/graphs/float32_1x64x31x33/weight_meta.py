class Program_weight_tensor_meta_coarse:
	name = "in_0"
	original_name = "coarse"
	shape = [1, 64, 31, 33]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_lateral:
	name = "in_1"
	original_name = "lateral"
	shape = [1, 64, 62, 66]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
