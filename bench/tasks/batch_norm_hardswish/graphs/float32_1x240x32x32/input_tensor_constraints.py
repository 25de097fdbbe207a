from sympy import Symbol

S0 = Symbol("S0")
S1 = Symbol("S1")
S2 = Symbol("S2")

dynamic_dim_constraint_symbols = [S0, S1, S2]

dynamic_dim_constraint_symbol2example_value = {S0: 1, S1: 32, S2: 32}

dynamic_dim_constraint_relations = []

dynamic_dim_constraint_input_shapes = [
    ([S0, 240, S1, S2], "in_0"),
    ([240], "w_0"),
    ([240], "w_1"),
    ([240], "w_2"),
    ([240], "w_3"),
]
