class Program_weight_tensor_meta_patches:
	name = "in_0"
	original_name = "patches"
	shape = [2, 768, 14, 14]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_class_token:
	name = "w_0"
	original_name = "class_token"
	shape = [1, 1, 768]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_position_embedding:
	name = "w_1"
	original_name = "position_embedding"
	shape = [1, 197, 768]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None
