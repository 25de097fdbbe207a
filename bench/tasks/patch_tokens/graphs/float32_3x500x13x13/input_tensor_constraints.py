from sympy import Symbol

S0 = Symbol("S0")

dynamic_dim_constraint_symbols = [S0]

dynamic_dim_constraint_symbol2example_value = {S0: 3}

dynamic_dim_constraint_relations = []

dynamic_dim_constraint_input_shapes = [
    ([S0, 500, 13, 13], "in_0"),
    ([1, 1, 500], "w_0"),
    ([1, 170, 500], "w_1"),
]
