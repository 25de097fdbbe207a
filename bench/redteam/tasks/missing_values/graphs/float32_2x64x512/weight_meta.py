class Program_weight_tensor_meta_measurements:
	name = "in_0"
	original_name = "measurements"
	shape = [2, 64, 512]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
