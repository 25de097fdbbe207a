class Program_weight_tensor_meta_attention_scores:
	name = "in_0"
	original_name = "attention_scores"
	shape = [1, 4, 64, 64]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_attention_mask:
	name = "in_1"
	original_name = "attention_mask"
	shape = [1, 1, 1, 64]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 50.0
	data = None
