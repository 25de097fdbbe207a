from sympy import Symbol

S0 = Symbol("S0")
S1 = Symbol("S1")

dynamic_dim_constraint_symbols = [S0, S1]

dynamic_dim_constraint_symbol2example_value = {S0: 3, S1: 77}

dynamic_dim_constraint_relations = []

dynamic_dim_constraint_input_shapes = [
    ([S0, S1], "in_0"),
    ([1, S1], "in_1"),
    ([S0, S1], "in_2"),
    ([500, 640], "w_0"),
    ([128, 640], "w_1"),
    ([2, 640], "w_2"),
    ([640], "w_3"),
    ([640], "w_4"),
]
