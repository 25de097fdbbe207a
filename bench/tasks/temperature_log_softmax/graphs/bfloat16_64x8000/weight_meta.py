class Program_weight_tensor_meta_logits:
	name = "in_0"
	original_name = "logits"
	shape = [64, 8000]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 20.0
	data = None
