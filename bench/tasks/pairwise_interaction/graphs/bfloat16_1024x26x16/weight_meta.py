class Program_weight_tensor_meta_embeddings:
	name = "in_0"
	original_name = "embeddings"
	shape = [1024, 26, 16]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.5
	std = 2.0
	data = None
