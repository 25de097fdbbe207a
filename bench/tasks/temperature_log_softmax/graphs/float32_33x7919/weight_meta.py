class Program_weight_tensor_meta_logits:
	name = "in_0"
	original_name = "logits"
	shape = [33, 7919]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 20.0
	data = None
