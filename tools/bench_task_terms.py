"""Words in which `bench_task_table.py` and `redteam_task_table.py` say what a task is: arguments, sizes, variants."""


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
