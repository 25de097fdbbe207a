class Program_weight_tensor_meta_features:
	name = "in_0"
	original_name = "features"
	shape = [2, 48, 55, 53]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
