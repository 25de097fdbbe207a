class Program_weight_tensor_meta_token_embeddings:
	name = "in_0"
	original_name = "token_embeddings"
	shape = [4, 96, 768]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_attention_mask:
	name = "in_1"
	original_name = "attention_mask"
	shape = [4, 96]
	dtype = "torch.int64"
	device = "cpu"
	mean = None
	std = None
	data = None
	min_val = 0
	max_val = 1
