class Program_weight_tensor_meta_embeddings:
	name = "in_0"
	original_name = "embeddings"
	shape = [512, 39, 16]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.5
	std = 2.0
	data = None
