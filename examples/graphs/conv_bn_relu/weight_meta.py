class Program_weight_tensor_meta_in_0:
	name = "in_0"
	shape = [2, 16, 14, 14]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 1.0
	data = None


class Program_weight_tensor_meta_in_1:
	name = "in_1"
	shape = [2, 16, 14, 14]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 1.0
	data = None


class Program_weight_tensor_meta_w_0:
	name = "w_0"
	shape = [16, 16, 3, 3]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 0.083
	data = None


class Program_weight_tensor_meta_w_1:
	name = "w_1"
	shape = [16]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 0.1
	data = None


class Program_weight_tensor_meta_w_2:
	name = "w_2"
	shape = [16]
	dtype = "torch.float32"
	device = "cpu"
	mean = 1.0
	std = 0.1
	data = None
	min_val = 0


class Program_weight_tensor_meta_w_3:
	name = "w_3"
	shape = [16]
	dtype = "torch.float32"
	device = "cpu"
	mean = 1.0
	std = 0.1
	data = None


class Program_weight_tensor_meta_w_4:
	name = "w_4"
	shape = [16]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 0.1
	data = None
