class Program_weight_tensor_meta_features:
	name = "in_0"
	original_name = "features"
	shape = [512, 768]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None


class Program_weight_tensor_meta_logit_scale:
	name = "w_0"
	original_name = "logit_scale"
	shape = [1]
	dtype = "torch.float16"
	device = "cpu"
	mean = 2.0
	std = 0.5
	data = None
