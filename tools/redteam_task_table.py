"""Tasks that several attacks of the red team share; in the words of `bench_task_table.py`."""

from bench_task_terms import BF16, F16, F32, flags, ids, value, variants

REDTEAM_TASKS = [
    {
        "name": "add_in_place",
        "varies": "B S",
        "args": [value("in_0", "stream", "B S D"), value("in_1", "update", "B S D")],
        "body": """
            in_0 += in_1
            tmp_0 = in_0
            tmp_1 = torch.nn.functional.relu(tmp_0, False)
            return (tmp_1,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 2, 1), S=(64, 64, 64, 77), D=(512, 512, 512, 300)),
    },
    {
        "name": "result_and_copy",
        "varies": "B S",
        "args": [value("in_0", "hidden_states", "B S D")],
        "body": """
            tmp_0 = torch.nn.functional.silu(in_0, False)
            tmp_1 = tmp_0.clone()
            return (tmp_0, tmp_1)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 2, 1), S=(64, 64, 64, 77), D=(512, 512, 512, 300)),
    },
    {
        "name": "one_number",
        "varies": "B S",
        "args": [
            value("in_0", "hidden_states", "B S D"),
            {"name": "in_1", "original": "temperature", "shape": "", "mean": 1.0, "std": 0.0},
            {"name": "in_2", "original": "offset", "shape": "", "dtype": "int64", "min_val": 0, "max_val": 3},
            flags("in_3", "is_causal", ""),
        ],
        "body": """
            tmp_0 = in_0 * in_1
            tmp_1 = tmp_0 + in_2
            tmp_2 = torch.where(in_3, tmp_1, in_0)
            return (tmp_2,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 2, 1), S=(64, 64, 64, 77), D=(512, 512, 512, 300)),
    },
    {
        "name": "padding_masked",
        "varies": "B S",
        "args": [ids("in_0", "input_ids", "B S", 30522), value("in_1", "hidden_states", "B S D")],
        "body": """
            tmp_0 = in_0.ne(1)
            tmp_1 = tmp_0.unsqueeze(-1)
            tmp_2 = tmp_1.type_as(in_1)
            tmp_3 = torch.nn.functional.silu(in_1, False)
            tmp_4 = tmp_3 * tmp_2
            return (tmp_4,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 2, 1), S=(64, 64, 64, 77), D=(512, 512, 512, 300)),
    },
    {
        "name": "missing_values",
        "varies": "B S",
        "args": [value("in_0", "measurements", "B S D")],
        "body": """
            tmp_0 = in_0 == -1.0
            tmp_1 = torch.nn.functional.silu(in_0, False)
            tmp_2 = tmp_1.masked_fill(tmp_0, 0.0)
            return (tmp_2,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 2, 1), S=(64, 64, 64, 77), D=(512, 512, 512, 300)),
    },
    {
        "name": "unneeded_softmax",
        "varies": "B S",
        "args": [value("in_0", "hidden_states", "B S D")],
        "body": """
            tmp_0 = torch.nn.functional.silu(in_0, False)
            tmp_1 = torch.nn.functional.softmax(in_0, dim=-1)
            tmp_2 = tmp_0 * in_0
            return (tmp_2,)
        """,
        "variants": variants(F32, F16, BF16, F32, B=(2, 2, 2, 1), S=(64, 64, 64, 77), D=(512, 512, 512, 300)),
    },
]
