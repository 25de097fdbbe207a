from sympy import Symbol

S0 = Symbol("S0")
S1 = Symbol("S1")

dynamic_dim_constraint_symbols = [S0, S1]

dynamic_dim_constraint_symbol2example_value = {S0: 2, S1: 192}

dynamic_dim_constraint_relations = []

dynamic_dim_constraint_input_shapes = [
    ([S0, S1], "in_0"),
    ([1, S1], "in_1"),
    ([S0, S1], "in_2"),
    ([600, 768], "w_0"),
    ([256, 768], "w_1"),
    ([2, 768], "w_2"),
    ([768], "w_3"),
    ([768], "w_4"),
]
