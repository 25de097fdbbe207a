//! Tracing: what it accepts, and how it refuses the rest.

use passnet_graph::syntax::Source;
use passnet_graph::{Arg, Graph};
use passnet_pass::load::{Bindings, PassFile, Program};
use passnet_pass::trace::{Dialect, Pass, trace};

fn run(text: &str, dialect: Dialect) -> Result<Pass, Vec<String>> {
    let program = Program::from_source(Source::new("p.py", text)).unwrap();
    let bindings = Bindings::of(&program);
    let module = program.ids().next().unwrap();
    let file = PassFile { name: "p".into(), module, is_input: false };
    trace(&program, &bindings, &file, dialect)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// A pass whose pattern is the given body.
fn with_pattern(parameters: &str, body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    format!(
        "import math\nimport operator\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\
         EPS = 1e-5\nSIZES = (2, 3)\nA, B = 4, EPS * 2\n\
         def double(x, times=2):\n    return x * times\n\
         def pattern({parameters}):\n    {body}\n\
         def replacement_args({parameters}):\n    return ({},)\n\
         def wrapper(*args):\n    return args\n\
         def replacement_func():\n    return wrapper\n",
        parameters.split(',').next().unwrap()
    )
}

fn calls(graph: &Graph) -> Vec<String> {
    let mut lines: Vec<String> = graph
        .calls()
        .map(|(id, call)| {
            let kwargs =
                call.kwargs.iter().map(|(name, arg)| format!("{name}={}", show(graph, arg)));
            let args = call.args.iter().map(|arg| show(graph, arg)).chain(kwargs);
            let args = args.collect::<Vec<_>>().join(", ");
            format!("{} = {}({args})", graph.node(id).name, call.target.path())
        })
        .collect();
    let outputs: Vec<_> = graph.outputs.iter().map(|arg| show(graph, arg)).collect();
    lines.push(format!("return {}", outputs.join(", ")));
    lines
}

fn show(graph: &Graph, arg: &Arg) -> String {
    match arg {
        Arg::Node(id) => graph.node(*id).name.to_string(),
        Arg::Int(value) => value.to_string(),
        Arg::Float(value) => format!("{value:?}"),
        Arg::Str(value) => format!("'{value}'"),
        other => format!("{other:?}"),
    }
}

fn pattern(parameters: &str, body: &str) -> Vec<String> {
    calls(&run(&with_pattern(parameters, body), Dialect::Plain).unwrap().pattern.graph)
}

fn error(parameters: &str, body: &str) -> String {
    run(&with_pattern(parameters, body), Dialect::Plain).unwrap_err().remove(0)
}

#[test]
fn names_calls_methods_operators_and_aliases() {
    assert_eq!(
        pattern(
            "x, y",
            "t = F.relu(x, inplace=False)\nt = t.add(y)\nreturn nn.functional.silu(t) * -y"
        ),
        [
            "relu = torch.nn.functional.relu(x, inplace=Bool(false))",
            "add = add(relu, y)",
            "silu = torch.nn.functional.silu(add)",
            "neg = neg(y)",
            "mul = mul(silu, neg)",
            "return mul"
        ]
    );
}

#[test]
fn constants_loops_and_helpers_are_evaluated() {
    assert_eq!(
        pattern(
            "x",
            "for i in range(2):\n    x = double(x, times=A + i)\nif len(SIZES) == 2 and EPS < 1:\n    x = x + math.sqrt(16) + B\nreturn x"
        ),
        [
            "mul = mul(x, 4)",
            "mul_1 = mul(mul, 5)",
            "add = add(mul_1, 4.0)",
            "add_1 = add(add, 2e-5)",
            "return add_1"
        ]
    );
    assert_eq!(pattern("x", "f = lambda v: v.sin()\nreturn f(f(x))")[1], "sin_1 = sin(sin)");
    assert!(error("x", "return [p * 2 for p in x.chunk(2)]").contains("no fixed number"));
}

#[test]
fn tuples_are_taken_apart_by_subscripts() {
    assert_eq!(
        pattern("x", "a, b = x.chunk(2, dim=-1)\nreturn a * F.silu(b), b"),
        [
            "chunk = chunk(x, 2, dim=-1)",
            "getitem = getitem(chunk, 0)",
            "getitem_1 = getitem(chunk, 1)",
            "silu = torch.nn.functional.silu(getitem_1)",
            "mul = mul(getitem, silu)",
            "return mul, getitem_1"
        ]
    );
}

#[test]
fn in_place_updates_differ_between_the_dialects() {
    let text = with_pattern("x, y", "x += y\nreturn x.relu()");
    let plain = run(&text, Dialect::Plain).unwrap();
    assert_eq!(calls(&plain.pattern.graph)[0], "iadd = iadd(x, y)");
    let fx = run(&text, Dialect::Fx).unwrap();
    assert_eq!(calls(&fx.pattern.graph)[0], "add = add(x, y)");
}

#[test]
fn sizes_read_for_nothing_leave_no_trace() {
    assert_eq!(
        pattern("x", "B, C = x.shape[0], x.shape[1]\nreturn x.relu()"),
        ["relu = relu(x)", "return relu"]
    );
}

#[test]
fn dead_values_are_dropped_with_a_warning() {
    let pass = run(&with_pattern("x", "y = x.sin()\nreturn x.cos()"), Dialect::Plain).unwrap();
    assert_eq!(pass.pattern.graph.op_count(), 1);
    assert_eq!(pass.warnings.len(), 1);
    assert!(pass.warnings[0].message.contains("never used"));
}

#[test]
fn route_strings_stay_constants_and_the_wrapper_is_found() {
    let text =
        with_pattern("x", "return x.relu()").replace("return (x,)", "return (x, 'relu', 1.5)");
    let pass = run(&text, Dialect::Plain).unwrap();
    assert_eq!(calls(&pass.arguments.graph), ["return x, 'relu', 1.5"]);
    assert_eq!(pass.wrapper.function, "wrapper");
}

#[test]
fn what_cannot_be_traced_says_why_and_where() {
    for (body, line, message) in [
        ("if x.sum() > 0:\n    return x.relu()\nreturn x.sin()", 12, "depends on a tensor"),
        ("for row in x:\n    pass\nreturn x.sin()", 12, "no fixed number of steps"),
        ("while x:\n    pass\nreturn x.sin()", 12, "depends on a tensor"),
        ("return undefined(x)", 12, "`undefined` is not defined"),
        ("return x", 11, "returns its argument `x` unchanged"),
        ("return 1", 11, "returns no computed value"),
        ("return {'a': x.sin()}", 11, "`pattern` returns a dict"),
        ("def f(v):\n    return f(v)\nreturn f(x)", 13, "more than 32 deep"),
        ("while True:\n    pass", 12, "more than 200000 steps"),
        ("return x.sin() + [0] * 10 ** 9", 12, "too long"),
        ("try:\n    return x.sin()\nexcept Exception:\n    return x", 12, "`try` cannot be traced"),
        ("return __import__('os').system('true')", 12, "`__import__` is not defined"),
        ("return 10 ** 400 * x", 12, "does not fit in 64 bits"),
        ("return x.sin() / (1 // 0)", 12, "division by zero"),
    ] {
        let found = error("x", body);
        assert!(found.starts_with(&format!("p.py:{line}:")), "{body}: {found}");
        assert!(found.contains(message), "{body}: {found}");
    }
}

#[test]
fn unused_arguments_and_unstable_wrappers_are_refused() {
    assert!(error("x, y", "return x.sin()").contains("argument `y` of `pattern` is never used"));
    let text = with_pattern("x", "return x.sin()")
        .replace("    return wrapper\n", "    return lambda x: x\n");
    assert!(
        run(&text, Dialect::Plain).unwrap_err()[0].contains("makes a new function at every call")
    );
    let text = with_pattern("x", "return x.sin()")
        .replace("    return wrapper\n", "    return torch.add\n");
    assert!(run(&text, Dialect::Plain).unwrap_err()[0].contains("not a function of this pass"));
    let text = with_pattern("x", "return x.sin()").replace("return (x,)", "return x");
    assert!(run(&text, Dialect::Plain).unwrap_err()[0].contains("must return a tuple"));
}
