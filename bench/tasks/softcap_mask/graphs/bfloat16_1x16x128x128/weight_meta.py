class Program_weight_tensor_meta_scores:
	name = "in_0"
	original_name = "scores"
	shape = [1, 16, 128, 128]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 100.0
	data = None


class Program_weight_tensor_meta_causal_mask:
	name = "in_1"
	original_name = "causal_mask"
	shape = [1, 1, 128, 128]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 100.0
	data = None
