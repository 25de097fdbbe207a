//! The kernels of the demonstration passes: no finding of any check, on the inputs their headers describe.

use passnet_graph::syntax::Source;
use passnet_kernel::check::{Severity, check};
use passnet_kernel::fixture::Fixture;
use std::path::Path;

#[test]
fn the_checks_find_nothing_in_the_demonstration_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/passes");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|folder| folder.join(folder.file_name().unwrap()).with_extension("py"))
        .collect();
    files.sort();
    assert!(files.len() >= 24);
    for file in files {
        let fixture = Fixture::new(Source::read(&file).unwrap()).unwrap();
        let prepared = fixture.prepare().unwrap();
        let mut buffers = fixture.buffers(&prepared);
        let findings = check(
            &fixture.modules,
            &fixture.wrapper().unwrap(),
            &fixture.header.host_args(),
            &prepared,
            buffers.iter_mut().map(Vec::as_mut_slice).collect(),
        );
        let serious: Vec<_> = findings.iter().filter(|f| f.severity > Severity::Note).collect();
        assert!(serious.is_empty(), "{}: {serious:?}", file.display());
    }
}

#[test]
fn helper_files_take_part() {
    let pass = "from pass_dir.sizes import BLOCK\n\
        import torch\nimport triton\nimport triton.language as tl\n\n\
        @triton.jit\ndef double(x_ptr, out_ptr, n, SIZE: tl.constexpr):\n    \
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)\n    \
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)\n\n\
        def run(x):\n    out = torch.empty_like(x)\n    \
        double[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), SIZE=BLOCK)\n    return out\n";
    let pass = format!("# wrapper: run\n# input: x float32 [100] arange\n{pass}");
    let helper = ("sizes".to_string(), Source::new("sizes.py", "BLOCK = 64\n"));
    let fixture =
        Fixture::with_helpers(Source::new("pass.py", pass.as_str()), vec![helper]).unwrap();
    let outputs = fixture.run(&fixture.prepare().unwrap(), Default::default()).unwrap();
    let last = f32::from_le_bytes(outputs.data[0][396..400].try_into().unwrap());
    assert_eq!(last, 198.0);
}

/// Rows of five in planes of thirteen, four rows to a program: the last program of a plane would reach into the next one,
/// were it not for the mask.
#[test]
fn a_mask_over_rows_keeps_programs_of_different_planes_apart() {
    let parallel = |mask: &str| {
        let pass = format!(
            "# wrapper: run\n# input: x float32 [3, 13, 5] normal\n\
            import torch\nimport triton\nimport triton.language as tl\n\n\
            @triton.jit\ndef double(x_ptr, out_ptr, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):\n    \
            row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]\n    \
            column = tl.arange(0, WIDTH)[None, :]\n    \
            inside = {mask}\n    \
            at = tl.program_id(0) * rows * width + row * width + column\n    \
            tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside, other=0.0) * 2, mask=inside)\n\n\
            def run(x):\n    out = torch.empty_like(x)\n    \
            double[(x.shape[0], triton.cdiv(x.shape[1], 4))](x, out, x.shape[1], x.shape[2], ROWS=4, WIDTH=8)\n    \
            return out\n"
        );
        Fixture::new(Source::new("pass.py", pass.as_str())).unwrap().prepare().unwrap().parallel()
    };
    assert_eq!(parallel("(row < rows) & (column < width)"), [true]);
    assert_eq!(parallel("(row <= rows) & (column < width)"), [false], "a row of the next plane");
    assert_eq!(parallel("(row < rows) & (column <= width)"), [false], "an element of the next row");
    assert_eq!(parallel("column < width"), [false], "rows of the next plane");
}
