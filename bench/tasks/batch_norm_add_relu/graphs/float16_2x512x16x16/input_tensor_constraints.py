from sympy import Symbol

S0 = Symbol("S0")
S1 = Symbol("S1")
S2 = Symbol("S2")

dynamic_dim_constraint_symbols = [S0, S1, S2]

dynamic_dim_constraint_symbol2example_value = {S0: 2, S1: 16, S2: 16}

dynamic_dim_constraint_relations = []

dynamic_dim_constraint_input_shapes = [
    ([S0, 512, S1, S2], "in_0"),
    ([S0, 512, S1, S2], "in_1"),
    ([512], "w_0"),
    ([512], "w_1"),
    ([512], "w_2"),
    ([512], "w_3"),
]
