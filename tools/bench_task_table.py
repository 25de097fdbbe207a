"""What the demonstration tasks compute: small pieces of well-known models, written out by hand.

Each task is one operator sequence in several sizes and dtypes, so that one pass can serve all its graphs. Sizes
stay near a quarter of a million elements: long enough to be timed, short enough that all tasks are evaluated in
two minutes on two cores. Recorded deviations are five times the wanted ones, because replay divides them by five.

`varies` names the sizes that a deployed model changes from call to call: how many samples, tokens or pixels. Widths,
heads and channels belong to the weights and stay; so do sizes that are tied to others (an upsampled map is twice as
high, windows of seven divide the map), for a symbol promises every value.
"""

from bench_task_terms import BF16, F16, F32, bias, flags, ids, value, variants, weight

TASKS = [
    {
        # Mamba2 and gated Llama variants: the norm before the output projection.
        "name": "rms_norm_gate",
        "varies": "B S",
        "args": [
            value("in_0", "hidden_states", "B S D"),
            value("in_1", "gate", "B S D"),
            weight("w_0", "norm_weight", "D"),
        ],
        "body": """
            tmp_0 = in_0.to(torch.float32)
            tmp_1 = tmp_0.pow(2)
            tmp_2 = tmp_1.mean(-1, keepdim=True)
            tmp_3 = tmp_2 + 1e-06
            tmp_4 = torch.rsqrt(tmp_3)
            tmp_5 = tmp_0 * tmp_4
            tmp_6 = tmp_5.type_as(in_0)
            tmp_7 = tmp_6 * w_0
            tmp_8 = torch.nn.functional.silu(in_1, False)
            tmp_9 = tmp_7 * tmp_8
            return (tmp_9,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 4, 1), S=(128, 192, 64, 131), D=(1024, 768, 1024, 1536)),
    },
    {
        # Pre-norm transformer blocks: the residual stream is both normalised and carried on.
        "name": "add_layer_norm",
        "varies": "B S",
        "args": [
            value("in_0", "attention_output", "B S D"),
            value("in_1", "residual", "B S D"),
            weight("w_0", "norm_weight", "D"),
            bias("w_1", "norm_bias", "D"),
        ],
        "body": """
            tmp_0 = in_1 + in_0
            tmp_1 = torch.nn.functional.layer_norm(tmp_0, ({D},), w_0, w_1, 1e-05)
            return (tmp_0, tmp_1)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 1, 4, 1), S=(197, 384, 128, 97), D=(768, 1024, 512, 1152)),
    },
    {
        # BERT-style attention probabilities: scaled scores, an additive mask, softmax, dropout at rest.
        "name": "masked_softmax",
        "varies": "B S K",
        "args": [
            value("in_0", "attention_scores", "B H S K"),
            value("in_1", "attention_mask", "B 1 1 K", std=50.0),
        ],
        "body": """
            tmp_0 = in_0 / 8.0
            tmp_1 = tmp_0 + in_1
            tmp_2 = torch.nn.functional.softmax(tmp_1, -1, 3, None)
            tmp_3 = torch.nn.functional.dropout(tmp_2, 0.1, False, False)
            return (tmp_3,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 1, 1), H=(12, 8, 16, 12), S=(128, 128, 128, 77), K=(128, 128, 128, 231)
        ),
    },
    {
        # The end of a feed-forward block in its inference form.
        "name": "gelu_dropout_add",
        "varies": "B S",
        "args": [value("in_0", "hidden_states", "B S D"), value("in_1", "residual", "B S D")],
        "body": """
            tmp_0 = torch.nn.functional.gelu(in_0)
            tmp_1 = torch.nn.functional.dropout(tmp_0, 0.1, False, False)
            tmp_2 = tmp_1 + in_1
            return (tmp_2,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 4, 1), S=(128, 128, 64, 197), D=(1024, 1024, 1024, 768)),
    },
    {
        # Phi-3 and other packed SwiGLU blocks: one projection holds gate and value side by side.
        "name": "swiglu",
        "varies": "B S",
        "args": [value("in_0", "gate_up", "B S W")],
        "body": """
            tmp_0 = in_0.chunk(2, dim=-1)
            tmp_1 = tmp_0[0]
            tmp_2 = tmp_0[1]
            tmp_3 = torch.nn.functional.silu(tmp_1, False)
            tmp_4 = tmp_2 * tmp_3
            return (tmp_4,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(1, 2, 2, 1), S=(128, 96, 128, 65), W=(4096, 4096, 2048, 5632)),
    },
    {
        # Llama: rotary position embedding by halves.
        "name": "rotary_half",
        "varies": "B S",
        "args": [
            value("in_0", "query", "B H S 64"),
            value("in_1", "cos", "1 1 S 64"),
            value("in_2", "sin", "1 1 S 64"),
        ],
        "body": """
            tmp_0 = in_0 * in_1
            tmp_1 = in_0[Ellipsis, slice(None, 32, None)]
            tmp_2 = in_0[Ellipsis, slice(32, None, None)]
            tmp_3 = -tmp_2
            tmp_4 = torch.cat((tmp_3, tmp_1), dim=-1)
            tmp_5 = tmp_4 * in_2
            tmp_6 = tmp_0 + tmp_5
            return (tmp_6,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(1, 2, 1, 1), H=(32, 16, 32, 14), S=(128, 128, 128, 197)),
    },
    {
        # GPT-J and vision transformers: rotary position embedding by neighbouring pairs.
        "name": "rotary_pairs",
        "varies": "B S",
        "args": [
            value("in_0", "query", "B H S 64"),
            value("in_1", "sin", "S 64"),
            value("in_2", "cos", "S 64"),
        ],
        "body": """
            tmp_0 = in_0[Ellipsis, slice(None, None, 2)]
            tmp_1 = in_0[Ellipsis, slice(1, None, 2)]
            tmp_2 = -tmp_1
            tmp_3 = torch.stack([tmp_2, tmp_0], -1)
            tmp_4 = tmp_3.reshape({B}, {H}, {S}, 64)
            tmp_5 = in_0 * in_2
            tmp_6 = tmp_4 * in_1
            tmp_7 = tmp_5 + tmp_6
            return (tmp_7,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(1, 2, 1, 1), H=(16, 12, 16, 12), S=(256, 128, 256, 196)),
    },
    {
        # Diffusion U-Nets: the front of every residual block.
        "name": "group_norm_silu",
        "varies": "B H W",
        "args": [value("in_0", "sample", "B C H W"), weight("w_0", "norm_weight", "C"), bias("w_1", "norm_bias", "C")],
        "body": """
            tmp_0 = torch.nn.functional.group_norm(in_0, 32, w_0, w_1, 1e-06)
            tmp_1 = torch.nn.functional.silu(tmp_0, False)
            return (tmp_1,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 1, 2, 1), C=(320, 512, 128, 192), H=(32, 16, 32, 29), W=(32, 32, 32, 31)
        ),
    },
    {
        # ResNet: the end of a bottleneck block. The graph adds and rectifies in place, as the model does.
        "name": "batch_norm_add_relu",
        "varies": "B H W",
        "args": [
            value("in_0", "conv_output", "B C H W"),
            value("in_1", "shortcut", "B C H W"),
            bias("w_0", "running_mean", "C"),
            weight("w_1", "running_var", "C", min_val=0.1),
            weight("w_2", "weight", "C"),
            bias("w_3", "bias", "C"),
        ],
        "body": """
            tmp_0 = torch.nn.functional.batch_norm(in_0, w_0, w_1, w_2, w_3, False, 0.1, 1e-05)
            tmp_0 += in_1
            tmp_1 = tmp_0
            tmp_2 = torch.nn.functional.relu(tmp_1, inplace=True)
            return (tmp_2,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 4, 1), C=(256, 512, 256, 144), H=(32, 16, 16, 41), W=(32, 16, 16, 43)
        ),
    },
    {
        # MobileNetV3: what follows a depthwise convolution.
        "name": "batch_norm_hardswish",
        "varies": "B H W",
        "args": [
            value("in_0", "conv_output", "B C H W"),
            bias("w_0", "running_mean", "C"),
            weight("w_1", "running_var", "C", min_val=0.1),
            weight("w_2", "weight", "C"),
            bias("w_3", "bias", "C"),
        ],
        "body": """
            tmp_0 = torch.nn.functional.batch_norm(in_0, w_0, w_1, w_2, w_3, False, 0.01, 0.001)
            tmp_1 = torch.nn.functional.hardswish(tmp_0, True)
            return (tmp_1,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 4, 4, 1), C=(240, 200, 184, 72), H=(32, 14, 14, 57), W=(32, 14, 14, 55)
        ),
    },
    {
        # EfficientNet-style squeeze and excite, with the block's residual.
        "name": "squeeze_excite_add",
        "varies": "B H W",
        "args": [
            value("in_0", "gate_logits", "B C 1 1"),
            value("in_1", "features", "B C H W"),
            value("in_2", "shortcut", "B C H W"),
        ],
        "body": """
            tmp_0 = torch.nn.functional.hardsigmoid(in_0, False)
            tmp_1 = in_1 * tmp_0
            tmp_2 = tmp_1 + in_2
            return (tmp_2,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 4, 8, 1), C=(256, 240, 160, 80), H=(32, 16, 14, 55), W=(32, 16, 14, 57)
        ),
    },
    {
        # ShuffleNet: rectified channels, interleaved across two groups.
        "name": "channel_shuffle",
        "varies": "B H W",
        "args": [value("in_0", "features", "B C H W")],
        "body": """
            tmp_0 = torch.nn.functional.relu(in_0, False)
            tmp_1 = tmp_0.view({B}, 2, {G}, {H}, {W})
            tmp_2 = torch.transpose(tmp_1, 1, 2)
            tmp_3 = tmp_2.contiguous()
            tmp_4 = tmp_3.view({B}, {C}, {H}, {W})
            return (tmp_4,)
        """,
        "variants": variants(
            F32,
            F16,
            BF16,
            F32,
            B=(1, 4, 4, 2),
            C=(232, 232, 116, 48),
            G=(116, 116, 58, 24),
            H=(32, 14, 28, 55),
            W=(32, 14, 28, 53),
        ),
    },
    {
        # U-Net skips: encoder and decoder features joined, rectified and padded for the next convolution.
        "name": "cat_relu_pad",
        "varies": "B H W",
        "args": [value("in_0", "decoder", "B C H W"), value("in_1", "encoder", "B D H W")],
        "body": """
            tmp_0 = torch.cat([in_0, in_1], dim=1)
            tmp_1 = torch.nn.functional.relu(tmp_0, False)
            tmp_2 = torch.nn.functional.pad(tmp_1, (1, 1, 1, 1), 'constant', 0)
            return (tmp_2,)
        """,
        "variants": variants(
            F32,
            F16,
            BF16,
            F32,
            B=(1, 2, 2, 1),
            C=(64, 128, 64, 24),
            D=(64, 64, 64, 40),
            H=(48, 28, 32, 61),
            W=(48, 28, 32, 63),
        ),
    },
    {
        # Swin: cyclic shift, then windows of seven by seven.
        "name": "shifted_windows",
        "varies": "B",
        "args": [value("in_0", "hidden_states", "B H H C")],
        "body": """
            tmp_0 = torch.roll(in_0, shifts=(-3, -3), dims=(1, 2))
            tmp_1 = tmp_0.view({B}, {N}, 7, {N}, 7, {C})
            tmp_2 = tmp_1.permute(0, 1, 3, 2, 4, 5)
            tmp_3 = tmp_2.contiguous()
            tmp_4 = tmp_3.view(-1, 7, 7, {C})
            tmp_5 = tmp_4.view(-1, 49, {C})
            return (tmp_5,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 4, 1), H=(56, 28, 28, 35), N=(8, 4, 4, 5), C=(96, 192, 96, 200)
        ),
    },
    {
        # BERT: three embeddings, their sum, and the first layer norm.
        "name": "embedding_layer_norm",
        "varies": "B S",
        "args": [
            ids("in_0", "input_ids", "B S", "V"),
            ids("in_1", "position_ids", "1 S", "P"),
            ids("in_2", "token_type_ids", "B S", "T"),
            weight("w_0", "word_embeddings", "V D", mean=0.0, std=5.0),
            weight("w_1", "position_embeddings", "P D", mean=0.0, std=5.0),
            weight("w_2", "token_type_embeddings", "T D", mean=0.0, std=5.0),
            weight("w_3", "norm_weight", "D"),
            bias("w_4", "norm_bias", "D"),
        ],
        "body": """
            tmp_0 = torch.nn.functional.embedding(in_0, w_0, 0, None, 2.0, False, False)
            tmp_1 = torch.nn.functional.embedding(in_2, w_2, None, None, 2.0, False, False)
            tmp_2 = tmp_0 + tmp_1
            tmp_3 = torch.nn.functional.embedding(in_1, w_1, None, None, 2.0, False, False)
            tmp_4 = tmp_2 + tmp_3
            tmp_5 = torch.nn.functional.layer_norm(tmp_4, ({D},), w_3, w_4, 1e-12)
            return (tmp_5,)
        """,
        "variants": variants(
            F32,
            F16,
            BF16,
            F32,
            B=(2, 4, 2, 3),
            S=(128, 96, 192, 77),
            V=(800, 800, 600, 500),
            P=(512, 512, 256, 128),
            T=(2, 2, 2, 2),
            D=(768, 512, 768, 640),
        ),
    },
    {
        # Sentence embeddings: the mean over real tokens, normalised to length one.
        "name": "masked_mean_pool",
        "varies": "B S",
        "args": [value("in_0", "token_embeddings", "B S D"), ids("in_1", "attention_mask", "B S", 1)],
        "body": """
            tmp_0 = in_1.unsqueeze(-1)
            tmp_1 = tmp_0.expand({B}, {S}, {D})
            tmp_2 = tmp_1.type_as(in_0)
            tmp_3 = in_0 * tmp_2
            tmp_4 = torch.sum(tmp_3, 1)
            tmp_5 = tmp_2.sum(1)
            tmp_6 = torch.clamp(tmp_5, min=0.001)
            tmp_7 = tmp_4 / tmp_6
            tmp_8 = torch.nn.functional.normalize(tmp_7, p=2, dim=1)
            return (tmp_8,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(4, 8, 8, 5), S=(96, 64, 48, 53), D=(768, 768, 1024, 1000)),
    },
    {
        # Sampling from a language model: temperature, then log probabilities in float32.
        "name": "temperature_log_softmax",
        "varies": "B",
        "args": [value("in_0", "logits", "B V", std=20.0)],
        "body": """
            tmp_0 = in_0.to(torch.float32)
            tmp_1 = tmp_0 / 0.7
            tmp_2 = torch.nn.functional.log_softmax(tmp_1, -1, 3, None)
            return (tmp_2,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(64, 96, 64, 33), V=(4096, 4096, 8000, 7919)),
    },
    {
        # T5: scores plus a learned position bias, softmax in float32, back to the model's dtype.
        "name": "biased_softmax",
        "varies": "B S K",
        "args": [value("in_0", "scores", "B H S K"), value("in_1", "position_bias", "1 H S K")],
        "body": """
            tmp_0 = in_0 + in_1
            tmp_1 = tmp_0.float()
            tmp_2 = torch.nn.functional.softmax(tmp_1, -1, 3, None)
            tmp_3 = tmp_2.type_as(tmp_0)
            tmp_4 = torch.nn.functional.dropout(tmp_3, 0.1, False, False)
            return (tmp_4,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 2, 1), H=(12, 8, 8, 6), S=(128, 128, 128, 181), K=(128, 128, 128, 179)
        ),
    },
    {
        # Gemma 2: attention scores bounded by a hyperbolic tangent, then masked.
        "name": "softcap_mask",
        "varies": "B S K",
        "args": [value("in_0", "scores", "B H S K", std=100.0), value("in_1", "causal_mask", "1 1 S K", std=100.0)],
        "body": """
            tmp_0 = in_0 / 50.0
            tmp_1 = torch.tanh(tmp_0)
            tmp_2 = tmp_1 * 50.0
            tmp_3 = tmp_2 + in_1
            return (tmp_3,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 1, 1), H=(16, 8, 16, 8), S=(128, 128, 128, 181), K=(128, 128, 128, 177)
        ),
    },
    {
        # Bloom: a bias that grows with distance, softmax over it.
        "name": "alibi_softmax",
        "varies": "B S K",
        "args": [
            value("in_0", "scores", "B H S K"),
            weight("in_1", "slopes", "H 1 1", mean=0.25),
            value("in_2", "positions", "1 1 K"),
        ],
        "body": """
            tmp_0 = in_1 * in_2
            tmp_1 = in_0 * 0.125
            tmp_2 = tmp_1 + tmp_0
            tmp_3 = torch.nn.functional.softmax(tmp_2, -1, 3, None)
            return (tmp_3,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 1, 1), H=(16, 8, 16, 6), S=(128, 128, 128, 151), K=(128, 128, 128, 233)
        ),
    },
    {
        # DeBERTa: masked scores get no probability at all.
        "name": "masked_fill_softmax",
        "varies": "B S K",
        "args": [value("in_0", "scores", "B H S K"), flags("in_1", "padding", "B 1 S K")],
        "body": """
            tmp_0 = in_0.masked_fill(in_1, -10000.0)
            tmp_1 = torch.softmax(tmp_0, -1)
            tmp_2 = tmp_1.masked_fill(in_1, 0)
            return (tmp_2,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 2, 1), H=(12, 8, 8, 7), S=(128, 128, 128, 163), K=(128, 128, 128, 199)
        ),
    },
    {
        # Vision transformers: patches to tokens, a class token in front, positions added.
        "name": "patch_tokens",
        "varies": "B",
        "args": [
            value("in_0", "patches", "B C H H"),
            weight("w_0", "class_token", "1 1 C", mean=0.0),
            weight("w_1", "position_embedding", "1 L C", mean=0.0),
        ],
        "body": """
            tmp_0 = in_0.flatten(2)
            tmp_1 = tmp_0.transpose(1, 2)
            tmp_2 = w_0.expand({B}, -1, -1)
            tmp_3 = torch.cat((tmp_2, tmp_1), dim=1)
            tmp_4 = tmp_3 + w_1
            return (tmp_4,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(2, 4, 2, 3), C=(768, 384, 768, 500), H=(14, 14, 14, 13), L=(197, 197, 197, 170)
        ),
    },
    {
        # Feature pyramids: the coarser map, doubled, added to the finer one.
        "name": "upsample_add",
        "varies": "B",
        "args": [value("in_0", "coarse", "B C H W"), value("in_1", "lateral", "B C Y X")],
        "body": """
            tmp_0 = torch.nn.functional.interpolate(in_0, None, 2.0, 'nearest', None, None, False)
            tmp_1 = in_1 + tmp_0
            return (tmp_1,)
        """,
        "variants": variants(
            F32,
            F16,
            BF16,
            F32,
            B=(1, 2, 1, 1),
            C=(256, 128, 256, 64),
            H=(16, 16, 16, 31),
            W=(16, 16, 16, 33),
            Y=(32, 32, 32, 62),
            X=(32, 32, 32, 66),
        ),
    },
    {
        # Factorisation machines in recommenders: all pairwise products of the features of a sample.
        "name": "pairwise_interaction",
        "varies": "B",
        "args": [value("in_0", "embeddings", "B F D", mean=0.5, std=2.0)],
        "body": """
            tmp_0 = in_0.sum(dim=1)
            tmp_1 = tmp_0.pow(2)
            tmp_2 = in_0.pow(2)
            tmp_3 = tmp_2.sum(dim=1)
            tmp_4 = tmp_1 - tmp_3
            tmp_5 = tmp_4.sum(dim=1, keepdim=True)
            tmp_6 = tmp_5 * 0.5
            return (tmp_6,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(512, 512, 1024, 301), F=(26, 39, 26, 23), D=(16, 16, 16, 40)),
    },
    {
        # Quantisation-aware inference: values on an eight-bit grid with a step for each channel.
        "name": "fake_quantize",
        "varies": "B S",
        "args": [value("in_0", "hidden_states", "B S D"), weight("w_0", "step", "D", mean=0.05, std=0.02, min_val=0.02)],
        "body": """
            tmp_0 = in_0 / w_0
            tmp_1 = torch.round(tmp_0)
            tmp_2 = torch.clamp(tmp_1, -128, 127)
            tmp_3 = tmp_2 * w_0
            return (tmp_3,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 4, 1), S=(128, 128, 64, 197), D=(1024, 1024, 1024, 800)),
    },
    {
        # ConvNeXt: layer scale on channels-last features, back to channels-first, residual.
        "name": "layer_scale_add",
        "varies": "B H W",
        "args": [value("in_0", "features", "B H W C"), weight("w_0", "gamma", "C"), value("in_1", "shortcut", "B C H W")],
        "body": """
            tmp_0 = in_0 * w_0
            tmp_1 = tmp_0.permute(0, 3, 1, 2)
            tmp_2 = in_1 + tmp_1
            return (tmp_2,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 1, 2, 1), H=(28, 28, 28, 31), W=(28, 28, 28, 29), C=(384, 384, 192, 300)
        ),
    },
    {
        # CLIP: the cheap GELU, followed by the block's residual.
        "name": "quick_gelu_add",
        "varies": "B S",
        "args": [value("in_0", "hidden_states", "B S D"), value("in_1", "residual", "B S D")],
        "body": """
            tmp_0 = 1.702 * in_0
            tmp_1 = torch.sigmoid(tmp_0)
            tmp_2 = in_0 * tmp_1
            tmp_3 = in_1 + tmp_2
            return (tmp_3,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 4, 1), S=(128, 128, 64, 257), D=(1024, 1024, 1024, 700)),
    },
    {
        # Diffusion transformers: layer norm without weights, scaled and shifted by the conditioning.
        "name": "adaptive_layer_norm",
        "varies": "B S",
        "args": [
            value("in_0", "hidden_states", "B S D"),
            value("in_1", "scale", "B D", std=1.0),
            value("in_2", "shift", "B D", std=1.0),
        ],
        "body": """
            tmp_0 = torch.nn.functional.layer_norm(in_0, ({D},), None, None, 1e-06)
            tmp_1 = in_1.unsqueeze(1)
            tmp_2 = 1 + tmp_1
            tmp_3 = tmp_0 * tmp_2
            tmp_4 = in_2.unsqueeze(1)
            tmp_5 = tmp_3 + tmp_4
            return (tmp_5,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 4, 3), S=(128, 128, 64, 67), D=(1152, 1152, 1024, 900)),
    },
    {
        # ConvNeXt V2: every channel weighed by its share of the total response.
        "name": "global_response_norm",
        "varies": "B H W",
        "args": [
            value("in_0", "features", "B H W C"),
            weight("w_0", "weight", "C"),
            bias("w_1", "bias", "C"),
        ],
        "body": """
            tmp_0 = in_0.norm(p=2, dim=(1, 2), keepdim=True)
            tmp_1 = tmp_0.mean(dim=-1, keepdim=True)
            tmp_2 = tmp_1 + 1e-06
            tmp_3 = tmp_0 / tmp_2
            tmp_4 = in_0 * tmp_3
            tmp_5 = torch.addcmul(w_1, w_0, tmp_4)
            tmp_6 = in_0 + tmp_5
            return (tmp_6,)
        """,
        "variants": variants(
            F32, F16, BF16, F32, B=(1, 2, 2, 3), H=(14, 14, 14, 11), W=(14, 14, 14, 13), C=(1024, 640, 640, 500)
        ),
    },
    {
        # Gemma: the gate goes through the tanh form of GELU.
        "name": "geglu_tanh",
        "varies": "B S",
        "args": [value("in_0", "gate", "B S D"), value("in_1", "up", "B S D")],
        "body": """
            tmp_0 = torch.nn.functional.gelu(in_0, approximate='tanh')
            tmp_1 = tmp_0 * in_1
            return (tmp_1,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(1, 2, 2, 1), S=(128, 64, 64, 73), D=(2048, 2048, 2048, 3000)),
    },
    {
        # Contrastive image-text models: features to length one, scaled by a learned temperature.
        "name": "normalize_scale",
        "varies": "B",
        "args": [value("in_0", "features", "B D"), weight("w_0", "logit_scale", "1", mean=2.0)],
        "body": """
            tmp_0 = in_0.norm(p=2, dim=-1, keepdim=True)
            tmp_1 = in_0 / tmp_0
            tmp_2 = w_0.exp()
            tmp_3 = tmp_1 * tmp_2
            return (tmp_3,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(512, 512, 256, 331), D=(512, 768, 1024, 700)),
    },
    {
        # Conformer: the gated linear unit between two convolutions, over channels.
        "name": "channel_glu",
        "varies": "B T",
        "args": [value("in_0", "conv_output", "B C T")],
        "body": """
            tmp_0 = torch.nn.functional.glu(in_0, 1)
            return (tmp_0,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(1, 2, 2, 1), C=(512, 512, 288, 350), T=(512, 256, 400, 701)),
    },
]

# What only attacks need: graphs that write into their inputs, give one result twice, or depend on a single number.
