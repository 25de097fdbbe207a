class Program_weight_tensor_meta_conv_output:
	name = "in_0"
	original_name = "conv_output"
	shape = [1, 350, 701]
	dtype = "torch.float32"
	device = "cpu"
	mean = 0.0
	std = 5.0
	data = None
