import torch


class GraphModule(torch.nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        w1: torch.Tensor,
        mean1: torch.Tensor,
        var1: torch.Tensor,
        gain1: torch.Tensor,
        bias1: torch.Tensor,
        w2: torch.Tensor,
        mean2: torch.Tensor,
        var2: torch.Tensor,
        gain2: torch.Tensor,
        bias2: torch.Tensor,
        w3: torch.Tensor,
        mean3: torch.Tensor,
        var3: torch.Tensor,
        gain3: torch.Tensor,
        bias3: torch.Tensor,
        w4: torch.Tensor,
        mean4: torch.Tensor,
        var4: torch.Tensor,
        gain4: torch.Tensor,
        bias4: torch.Tensor,
        w5: torch.Tensor,
        mean5: torch.Tensor,
        var5: torch.Tensor,
        gain5: torch.Tensor,
        bias5: torch.Tensor,
        w6: torch.Tensor,
        mean6: torch.Tensor,
        var6: torch.Tensor,
        gain6: torch.Tensor,
        bias6: torch.Tensor,
        w7: torch.Tensor,
        mean7: torch.Tensor,
        var7: torch.Tensor,
        gain7: torch.Tensor,
        bias7: torch.Tensor,
        w8: torch.Tensor,
        mean8: torch.Tensor,
        var8: torch.Tensor,
        gain8: torch.Tensor,
        bias8: torch.Tensor,
        w9: torch.Tensor,
        mean9: torch.Tensor,
        var9: torch.Tensor,
        gain9: torch.Tensor,
        bias9: torch.Tensor,
        w10: torch.Tensor,
        mean10: torch.Tensor,
        var10: torch.Tensor,
        gain10: torch.Tensor,
        bias10: torch.Tensor,
        w11: torch.Tensor,
        mean11: torch.Tensor,
        var11: torch.Tensor,
        gain11: torch.Tensor,
        bias11: torch.Tensor,
        w12: torch.Tensor,
        mean12: torch.Tensor,
        var12: torch.Tensor,
        gain12: torch.Tensor,
        bias12: torch.Tensor,
        w13: torch.Tensor,
        mean13: torch.Tensor,
        var13: torch.Tensor,
        gain13: torch.Tensor,
        bias13: torch.Tensor,
        w14: torch.Tensor,
        mean14: torch.Tensor,
        var14: torch.Tensor,
        gain14: torch.Tensor,
        bias14: torch.Tensor,
        w15: torch.Tensor,
        mean15: torch.Tensor,
        var15: torch.Tensor,
        gain15: torch.Tensor,
        bias15: torch.Tensor,
        w16: torch.Tensor,
        mean16: torch.Tensor,
        var16: torch.Tensor,
        gain16: torch.Tensor,
        bias16: torch.Tensor,
        w17: torch.Tensor,
        mean17: torch.Tensor,
        var17: torch.Tensor,
        gain17: torch.Tensor,
        bias17: torch.Tensor,
        w18: torch.Tensor,
        mean18: torch.Tensor,
        var18: torch.Tensor,
        gain18: torch.Tensor,
        bias18: torch.Tensor,
        w19: torch.Tensor,
        mean19: torch.Tensor,
        var19: torch.Tensor,
        gain19: torch.Tensor,
        bias19: torch.Tensor,
        w20: torch.Tensor,
        mean20: torch.Tensor,
        var20: torch.Tensor,
        gain20: torch.Tensor,
        bias20: torch.Tensor,
        fc: torch.Tensor,
        fc_bias: torch.Tensor,
    ):
        conv1 = torch.conv2d(x, w1, None, (2, 2), (3, 3), (1, 1), 1)
        norm1 = torch.nn.functional.batch_norm(conv1, mean1, var1, gain1, bias1, False, 0.1, 1e-05)
        relu1 = torch.nn.functional.relu(norm1, inplace=True)
        pool = torch.nn.functional.max_pool2d(relu1, 3, 2, 1, 1, ceil_mode=False, return_indices=False)
        conv2 = torch.conv2d(pool, w2, None, (1, 1), (1, 1), (1, 1), 1)
        norm2 = torch.nn.functional.batch_norm(conv2, mean2, var2, gain2, bias2, False, 0.1, 1e-05)
        relu2 = torch.nn.functional.relu(norm2, inplace=True)
        conv3 = torch.conv2d(relu2, w3, None, (1, 1), (1, 1), (1, 1), 1)
        norm3 = torch.nn.functional.batch_norm(conv3, mean3, var3, gain3, bias3, False, 0.1, 1e-05)
        norm3 += pool
        sum3 = norm3
        relu3s = torch.nn.functional.relu(sum3, inplace=True)
        conv4 = torch.conv2d(relu3s, w4, None, (1, 1), (1, 1), (1, 1), 1)
        norm4 = torch.nn.functional.batch_norm(conv4, mean4, var4, gain4, bias4, False, 0.1, 1e-05)
        relu4 = torch.nn.functional.relu(norm4, inplace=True)
        conv5 = torch.conv2d(relu4, w5, None, (1, 1), (1, 1), (1, 1), 1)
        norm5 = torch.nn.functional.batch_norm(conv5, mean5, var5, gain5, bias5, False, 0.1, 1e-05)
        norm5 += relu3s
        sum5 = norm5
        relu5s = torch.nn.functional.relu(sum5, inplace=True)
        conv6 = torch.conv2d(relu5s, w6, None, (2, 2), (1, 1), (1, 1), 1)
        norm6 = torch.nn.functional.batch_norm(conv6, mean6, var6, gain6, bias6, False, 0.1, 1e-05)
        relu6 = torch.nn.functional.relu(norm6, inplace=True)
        conv7 = torch.conv2d(relu6, w7, None, (1, 1), (1, 1), (1, 1), 1)
        norm7 = torch.nn.functional.batch_norm(conv7, mean7, var7, gain7, bias7, False, 0.1, 1e-05)
        conv8 = torch.conv2d(relu5s, w8, None, (2, 2), (0, 0), (1, 1), 1)
        norm8 = torch.nn.functional.batch_norm(conv8, mean8, var8, gain8, bias8, False, 0.1, 1e-05)
        norm7 += norm8
        sum7 = norm7
        relu7s = torch.nn.functional.relu(sum7, inplace=True)
        conv9 = torch.conv2d(relu7s, w9, None, (1, 1), (1, 1), (1, 1), 1)
        norm9 = torch.nn.functional.batch_norm(conv9, mean9, var9, gain9, bias9, False, 0.1, 1e-05)
        relu9 = torch.nn.functional.relu(norm9, inplace=True)
        conv10 = torch.conv2d(relu9, w10, None, (1, 1), (1, 1), (1, 1), 1)
        norm10 = torch.nn.functional.batch_norm(conv10, mean10, var10, gain10, bias10, False, 0.1, 1e-05)
        norm10 += relu7s
        sum10 = norm10
        relu10s = torch.nn.functional.relu(sum10, inplace=True)
        conv11 = torch.conv2d(relu10s, w11, None, (2, 2), (1, 1), (1, 1), 1)
        norm11 = torch.nn.functional.batch_norm(conv11, mean11, var11, gain11, bias11, False, 0.1, 1e-05)
        relu11 = torch.nn.functional.relu(norm11, inplace=True)
        conv12 = torch.conv2d(relu11, w12, None, (1, 1), (1, 1), (1, 1), 1)
        norm12 = torch.nn.functional.batch_norm(conv12, mean12, var12, gain12, bias12, False, 0.1, 1e-05)
        conv13 = torch.conv2d(relu10s, w13, None, (2, 2), (0, 0), (1, 1), 1)
        norm13 = torch.nn.functional.batch_norm(conv13, mean13, var13, gain13, bias13, False, 0.1, 1e-05)
        norm12 += norm13
        sum12 = norm12
        relu12s = torch.nn.functional.relu(sum12, inplace=True)
        conv14 = torch.conv2d(relu12s, w14, None, (1, 1), (1, 1), (1, 1), 1)
        norm14 = torch.nn.functional.batch_norm(conv14, mean14, var14, gain14, bias14, False, 0.1, 1e-05)
        relu14 = torch.nn.functional.relu(norm14, inplace=True)
        conv15 = torch.conv2d(relu14, w15, None, (1, 1), (1, 1), (1, 1), 1)
        norm15 = torch.nn.functional.batch_norm(conv15, mean15, var15, gain15, bias15, False, 0.1, 1e-05)
        norm15 += relu12s
        sum15 = norm15
        relu15s = torch.nn.functional.relu(sum15, inplace=True)
        conv16 = torch.conv2d(relu15s, w16, None, (2, 2), (1, 1), (1, 1), 1)
        norm16 = torch.nn.functional.batch_norm(conv16, mean16, var16, gain16, bias16, False, 0.1, 1e-05)
        relu16 = torch.nn.functional.relu(norm16, inplace=True)
        conv17 = torch.conv2d(relu16, w17, None, (1, 1), (1, 1), (1, 1), 1)
        norm17 = torch.nn.functional.batch_norm(conv17, mean17, var17, gain17, bias17, False, 0.1, 1e-05)
        conv18 = torch.conv2d(relu15s, w18, None, (2, 2), (0, 0), (1, 1), 1)
        norm18 = torch.nn.functional.batch_norm(conv18, mean18, var18, gain18, bias18, False, 0.1, 1e-05)
        norm17 += norm18
        sum17 = norm17
        relu17s = torch.nn.functional.relu(sum17, inplace=True)
        conv19 = torch.conv2d(relu17s, w19, None, (1, 1), (1, 1), (1, 1), 1)
        norm19 = torch.nn.functional.batch_norm(conv19, mean19, var19, gain19, bias19, False, 0.1, 1e-05)
        relu19 = torch.nn.functional.relu(norm19, inplace=True)
        conv20 = torch.conv2d(relu19, w20, None, (1, 1), (1, 1), (1, 1), 1)
        norm20 = torch.nn.functional.batch_norm(conv20, mean20, var20, gain20, bias20, False, 0.1, 1e-05)
        norm20 += relu17s
        sum20 = norm20
        relu20s = torch.nn.functional.relu(sum20, inplace=True)
        mean = torch.nn.functional.adaptive_avg_pool2d(relu20s, 1)
        flat = mean.flatten(1, -1)
        logits = torch._C._nn.linear(flat, fc, fc_bias)
        return (logits,)
