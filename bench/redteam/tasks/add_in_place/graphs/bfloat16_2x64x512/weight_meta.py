class Program_weight_tensor_meta_stream:
	name = "in_0"
	original_name = "stream"
	shape = [2, 64, 512]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_update:
	name = "in_1"
	original_name = "update"
	shape = [2, 64, 512]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
