class Program_weight_tensor_meta_decoder:
	name = "in_0"
	original_name = "decoder"
	shape = [2, 64, 32, 32]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_encoder:
	name = "in_1"
	original_name = "encoder"
	shape = [2, 64, 32, 32]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
