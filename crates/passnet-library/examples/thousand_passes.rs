//! A thousand passes against a graph of a thousand operations: `cargo run --release -p passnet-library --example
//! thousand_passes`. Prints how long the library takes to open, to be read for the graph, and to be matched.

use passnet_engine::Identity;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_library::folder::{Library, Origin};
use passnet_library::shelf::{Shelf, Trust, Wanted};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

/// Operations of the patterns; the graph has the first half of them.
const OPERATIONS: [&str; 8] = ["relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "log", "sin"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::temp_dir().join(format!("passnet-thousand-{}", std::process::id()));
    let library = Library::at(place.join("library"));
    for number in 0..1000 {
        let file = place.join(format!("pass_{number}.py"));
        std::fs::create_dir_all(&place)?;
        std::fs::write(&file, pass(number))?;
        library.add_passes(&file, &[], &Origin::default())?;
    }
    let graph = read_model(&Source::new("model.py", model()))?;
    let device = Identity::here("native").device;
    let wanted = Wanted { trust: Trust::All, device: &device, without: &BTreeSet::new() };
    let mut took = vec![Instant::now()];
    let shelf = Shelf::open(library)?;
    took.push(Instant::now());
    let first = shelf.rewrite(&graph, &wanted);
    took.push(Instant::now());
    let again = shelf.rewrite(&graph, &wanted);
    took.push(Instant::now());
    let ms: Vec<f64> =
        took.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
    writeln!(
        std::io::stdout(),
        "{} passes, {} operations: {} searched for, {} regions; opened in {:.1} ms, read and matched in {:.1} ms, \
         matched in {:.1} ms",
        shelf.len(),
        graph.op_count(),
        first.searched,
        again.sites.len(),
        ms[0],
        ms[1],
        ms[2]
    )?;
    Ok(std::fs::remove_dir_all(&place)?)
}

/// Most differ in a number only: the hardest to tell apart.
fn pass(number: usize) -> String {
    let (one, two) = (OPERATIONS[number % 8], OPERATIONS[number / 8 % 8]);
    format!(
        "import torch\nimport triton\nimport triton.language as tl\n\n\ndef pattern(x, y):\n    return torch.{one}(x * {number}.5) + torch.{two}(y)\n\n\n\
         def replacement_args(x, y):\n    return (x, y)\n\n\n@triton.jit\n\
         def kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):\n    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
         inside = at < count\n    x = tl.load(x_ptr + at, mask=inside)\n    y = tl.load(y_ptr + at, mask=inside)\n    \
         tl.store(out_ptr + at, x + y, mask=inside)\n\n\ndef wrapper(x, y):\n    out = torch.empty_like(x)\n    \
         kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)\n    return out\n\n\n\
         def replacement_func():\n    return wrapper\n"
    )
}

/// Two hundred blocks of five operations; ten of them are what a pass looks for.
fn model() -> String {
    let mut text = String::from(
        "import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, w):\n",
    );
    for block in 0..200 {
        let (one, two) = (OPERATIONS[block % 4], OPERATIONS[block / 4 % 4]);
        // Passes with these operations have numbers that leave such rests.
        let number = if block % 20 == 0 { block % 4 + 8 * (block / 4 % 4) } else { 5000 + block };
        let value = if block == 0 { "x".to_string() } else { format!("v_{block}") };
        let next = block + 1;
        let _ = write!(
            text,
            "        linear_{block} = torch.nn.functional.linear({value}, w)\n        mul_{block} = linear_{block} * {number}.5\n        \
             one_{block} = torch.{one}(mul_{block})\n        two_{block} = torch.{two}({value})\n        v_{next} = one_{block} + two_{block}\n"
        );
    }
    text + "        return (v_200,)\n"
}
