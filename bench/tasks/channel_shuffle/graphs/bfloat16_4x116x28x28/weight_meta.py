class Program_weight_tensor_meta_features:
	name = "in_0"
	original_name = "features"
	shape = [4, 116, 28, 28]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
