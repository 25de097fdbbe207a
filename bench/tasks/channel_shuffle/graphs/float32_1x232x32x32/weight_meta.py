class Program_weight_tensor_meta_features:
	name = "in_0"
	original_name = "features"
	shape = [1, 232, 32, 32]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
