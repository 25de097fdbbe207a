class Program_weight_tensor_meta_hidden_states:
	name = "in_0"
	original_name = "hidden_states"
	shape = [1, 77, 300]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_temperature:
	name = "in_1"
	original_name = "temperature"
	shape = []
	dtype = "torch.float32"
	device = "cpu"
	mean = 1.0
	std = 0.0
	data = None


class Program_weight_tensor_meta_offset:
	name = "in_2"
	original_name = "offset"
	shape = []
	dtype = "torch.int64"
	device = "cpu"
	mean = None
	std = None
	data = None
	min_val = 0
	max_val = 3


class Program_weight_tensor_meta_is_causal:
	name = "in_3"
	original_name = "is_causal"
	shape = []
	dtype = "torch.bool"
	device = "cpu"
	mean = None
	std = None
	data = None
