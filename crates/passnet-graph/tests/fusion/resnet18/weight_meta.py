class Program_weight_tensor_meta_x:
    name = "x"
    shape = [1, 3, 224, 224]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w1:
    name = "w1"
    shape = [64, 3, 7, 7]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean1:
    name = "mean1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var1:
    name = "var1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain1:
    name = "gain1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias1:
    name = "bias1"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w2:
    name = "w2"
    shape = [64, 64, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean2:
    name = "mean2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var2:
    name = "var2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain2:
    name = "gain2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias2:
    name = "bias2"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w3:
    name = "w3"
    shape = [64, 64, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean3:
    name = "mean3"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var3:
    name = "var3"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain3:
    name = "gain3"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias3:
    name = "bias3"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w4:
    name = "w4"
    shape = [64, 64, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean4:
    name = "mean4"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var4:
    name = "var4"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain4:
    name = "gain4"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias4:
    name = "bias4"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w5:
    name = "w5"
    shape = [64, 64, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean5:
    name = "mean5"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var5:
    name = "var5"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain5:
    name = "gain5"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias5:
    name = "bias5"
    shape = [64]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w6:
    name = "w6"
    shape = [128, 64, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean6:
    name = "mean6"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var6:
    name = "var6"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain6:
    name = "gain6"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias6:
    name = "bias6"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w7:
    name = "w7"
    shape = [128, 128, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean7:
    name = "mean7"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var7:
    name = "var7"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain7:
    name = "gain7"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias7:
    name = "bias7"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w8:
    name = "w8"
    shape = [128, 64, 1, 1]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean8:
    name = "mean8"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var8:
    name = "var8"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain8:
    name = "gain8"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias8:
    name = "bias8"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w9:
    name = "w9"
    shape = [128, 128, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean9:
    name = "mean9"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var9:
    name = "var9"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain9:
    name = "gain9"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias9:
    name = "bias9"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w10:
    name = "w10"
    shape = [128, 128, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean10:
    name = "mean10"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var10:
    name = "var10"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain10:
    name = "gain10"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias10:
    name = "bias10"
    shape = [128]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w11:
    name = "w11"
    shape = [256, 128, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean11:
    name = "mean11"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var11:
    name = "var11"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain11:
    name = "gain11"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias11:
    name = "bias11"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w12:
    name = "w12"
    shape = [256, 256, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean12:
    name = "mean12"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var12:
    name = "var12"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain12:
    name = "gain12"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias12:
    name = "bias12"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w13:
    name = "w13"
    shape = [256, 128, 1, 1]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean13:
    name = "mean13"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var13:
    name = "var13"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain13:
    name = "gain13"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias13:
    name = "bias13"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w14:
    name = "w14"
    shape = [256, 256, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean14:
    name = "mean14"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var14:
    name = "var14"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain14:
    name = "gain14"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias14:
    name = "bias14"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w15:
    name = "w15"
    shape = [256, 256, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean15:
    name = "mean15"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var15:
    name = "var15"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain15:
    name = "gain15"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias15:
    name = "bias15"
    shape = [256]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w16:
    name = "w16"
    shape = [512, 256, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean16:
    name = "mean16"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var16:
    name = "var16"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain16:
    name = "gain16"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias16:
    name = "bias16"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w17:
    name = "w17"
    shape = [512, 512, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean17:
    name = "mean17"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var17:
    name = "var17"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain17:
    name = "gain17"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias17:
    name = "bias17"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w18:
    name = "w18"
    shape = [512, 256, 1, 1]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean18:
    name = "mean18"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var18:
    name = "var18"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain18:
    name = "gain18"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias18:
    name = "bias18"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w19:
    name = "w19"
    shape = [512, 512, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean19:
    name = "mean19"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var19:
    name = "var19"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain19:
    name = "gain19"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias19:
    name = "bias19"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_w20:
    name = "w20"
    shape = [512, 512, 3, 3]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_mean20:
    name = "mean20"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_var20:
    name = "var20"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_gain20:
    name = "gain20"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 1.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_bias20:
    name = "bias20"
    shape = [512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_fc:
    name = "fc"
    shape = [1000, 512]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None


class Program_weight_tensor_meta_fc_bias:
    name = "fc_bias"
    shape = [1000]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 0.5
    data = None
