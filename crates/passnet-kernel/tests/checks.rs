//! Every check has kernels that must trip it (`*_bad.py`, with the rules in `# expect:`) and similar ones that must not.

mod support;

use passnet_graph::syntax::Source;
use passnet_kernel::check::{Finding, check};
use passnet_kernel::fixture::Fixture;
use support::python_files;

fn findings(fixture: &Fixture) -> Vec<Finding> {
    let prepared = fixture.prepare().unwrap_or_else(|e| panic!("{e}"));
    let mut buffers = fixture.buffers(&prepared);
    check(
        &fixture.modules,
        &fixture.wrapper().unwrap(),
        &fixture.header.host_args(),
        &prepared,
        buffers.iter_mut().map(Vec::as_mut_slice).collect(),
    )
}

/// What the findings of each file in a folder miss of its `# expect:` line, or have too much.
fn differences(folder: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in python_files(folder) {
        let fixture = Fixture::new(Source::read(&path).unwrap()).unwrap_or_else(|e| panic!("{e}"));
        let found = findings(&fixture);
        let mut rules: Vec<&str> = found.iter().map(|f| f.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        let mut expected: Vec<&str> = fixture.header.expect.iter().map(String::as_str).collect();
        expected.sort_unstable();
        if rules != expected {
            wrong.push(format!(
                "{}: found {rules:?}, expected {expected:?}\n{found:#?}",
                path.display()
            ));
        }
        for f in &found {
            assert!(f.line > 0 && !f.file.is_empty() && !f.message.is_empty(), "{f:?}");
        }
    }
    wrong
}

#[test]
fn checks_find_what_they_must_and_nothing_else() {
    let wrong = differences("checks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The parity fixtures are correct kernels: nothing but what they say of themselves.
#[test]
fn correct_kernels_have_no_findings() {
    let wrong = differences("kernels");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
