class Program_weight_tensor_meta_decoder:
	name = "in_0"
	original_name = "decoder"
	shape = [1, 24, 61, 63]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_encoder:
	name = "in_1"
	original_name = "encoder"
	shape = [1, 40, 61, 63]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
