class Program_weight_tensor_meta_conv_output:
	name = "in_0"
	original_name = "conv_output"
	shape = [2, 512, 256]
	dtype = "torch.float16"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
