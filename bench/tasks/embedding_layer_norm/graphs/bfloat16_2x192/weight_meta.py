class Program_weight_tensor_meta_input_ids:
	name = "in_0"
	original_name = "input_ids"
	shape = [2, 192]
	dtype = "torch.int64"
	device = "cpu"
	mean = None
	std = None
	data = None
	min_val = 0
	max_val = 599


class Program_weight_tensor_meta_position_ids:
	name = "in_1"
	original_name = "position_ids"
	shape = [1, 192]
	dtype = "torch.int64"
	device = "cpu"
	mean = None
	std = None
	data = None
	min_val = 0
	max_val = 255


class Program_weight_tensor_meta_token_type_ids:
	name = "in_2"
	original_name = "token_type_ids"
	shape = [2, 192]
	dtype = "torch.int64"
	device = "cpu"
	mean = None
	std = None
	data = None
	min_val = 0
	max_val = 1


class Program_weight_tensor_meta_word_embeddings:
	name = "w_0"
	original_name = "word_embeddings"
	shape = [600, 768]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_position_embeddings:
	name = "w_1"
	original_name = "position_embeddings"
	shape = [256, 768]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_token_type_embeddings:
	name = "w_2"
	original_name = "token_type_embeddings"
	shape = [2, 768]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_norm_weight:
	name = "w_3"
	original_name = "norm_weight"
	shape = [768]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 1.0
	std = 0.5
	data = None


class Program_weight_tensor_meta_norm_bias:
	name = "w_4"
	original_name = "norm_bias"
	shape = [768]
	dtype = "torch.bfloat16"
	device = "cpu"
	mean = 0.0
	std = 0.5
	data = None
