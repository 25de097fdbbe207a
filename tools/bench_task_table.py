"""What the demonstration tasks compute: small pieces of well-known models, written out by hand.

Each task is one operator sequence in several sizes and dtypes, so that one pass can serve all its graphs. Sizes
stay near a quarter of a million elements: long enough to be timed, short enough that all tasks are evaluated in
two minutes on two cores. Recorded deviations are five times the wanted ones, because replay divides them by five.
"""


def value(name, original, shape, **more):
    """An activation: about standard normal unless said otherwise."""
    return {"name": name, "original": original, "shape": shape, "mean": 0.0, "std": 5.0, **more}


def weight(name, original, shape, mean=1.0, std=0.5, **more):
    return {"name": name, "original": original, "shape": shape, "mean": mean, "std": std, **more}


def bias(name, original, shape, **more):
    return weight(name, original, shape, mean=0.0, **more)


def ids(name, original, shape, count):
    """Row numbers of a table with `count` rows."""
    return {"name": name, "original": original, "shape": shape, "dtype": "int64", "min_val": 0, "max_val": count}


def flags(name, original, shape):
    return {"name": name, "original": original, "shape": shape, "dtype": "bool"}


def sizes(**columns):
    """`sizes(B=(2, 1), D=(64, 96))` is [{B: 2, D: 64}, {B: 1, D: 96}]."""
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def variants(*dtypes, **columns):
    return list(zip(dtypes, sizes(**columns)))


F32, F16, BF16 = "float32", "float16", "bfloat16"

TASKS = [
    {
        # Mamba2 and gated Llama variants: the norm before the output projection.
        "name": "rms_norm_gate",
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
        "args": [value("in_0", "hidden_states", "B S D"), value("in_1", "residual", "B S D")],
        "body": """
            tmp_0 = torch.nn.functional.gelu(in_0)
            tmp_1 = torch.nn.functional.dropout(tmp_0, 0.1, False, False)
            tmp_2 = tmp_1 + in_1
            return (tmp_2,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 4, 1), S=(128, 128, 64, 197), D=(1024, 1024, 1024, 768)),
    },
]
