//! No exploit scores, with the integrity rules on or off, and no honest control is refused.

use passnet_bench::redteam;
use passnet_engine::native::NativeEngine;
use rayon::prelude::*;
use std::path::Path;

#[test]
fn no_exploit_scores_and_no_control_is_refused() {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let cases = redteam::cases(&bench.join("redteam"), &bench.join("tasks")).unwrap();
    assert!(cases.len() >= 80, "{} cases", cases.len());
    let wrong: Vec<String> = cases
        .par_iter()
        .map(|case| case.attempt(&NativeEngine).unwrap())
        .filter(|result| result.attack_succeeds() || result.honest_refused())
        .map(|result| {
            format!(
                "{}: exploit {} with rules, {} without; control {}",
                result.class,
                result.exploit_with_rules.verdict.kind,
                result.exploit_without_rules.verdict.kind,
                result.control.verdict
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
