//! The site on a disk: every link leads somewhere, every page stands alone.

mod support;

use passnet_web::site::{SiteOptions, write_site};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{Room, check_page, eager_run, elements, runs};

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(pages(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn written(room: &Room) -> PathBuf {
    let runs = [
        room.run("quick", &eager_run(1.4)),
        room.run("slow", &eager_run(0.9)),
        room.run("middle", &eager_run(1.1)),
        room.run("mixed", &runs::mixed()),
    ];
    let options = SiteOptions {
        runs: runs.to_vec(),
        dataset: Some(repository().join("bench/set/evaluation.pnds")),
        author: "the owner".into(),
        ..SiteOptions::default()
    };
    let out = room.path("site");
    let report = write_site(&options, &out, &mut |_| {}).unwrap();
    assert_eq!((report.runs, report.boards), (4, 2));
    out
}

#[test]
fn every_link_of_a_site_leads_to_a_page() {
    let room = Room::new();
    let out = written(&room);
    let all: BTreeSet<PathBuf> = pages(&out).into_iter().collect();
    assert!(all.contains(&out.join("index.html")) && all.len() > 50);
    let mut linked: BTreeSet<PathBuf> = BTreeSet::from([out.join("index.html")]);
    for page in &all {
        let text = std::fs::read_to_string(page).unwrap();
        let name = page.strip_prefix(&out).unwrap().display().to_string();
        check_page(&text, &name);
        for (_, attributes) in elements(&text) {
            for (_, href) in attributes.iter().filter(|(key, _)| key == "href") {
                if href.starts_with('#') || href.starts_with('?') {
                    continue;
                }
                let target = page.parent().unwrap().join(href);
                let target = target.canonicalize().unwrap_or_else(|_| panic!("{name}: {href}"));
                assert!(target.is_file(), "{name}: {href}");
                linked.insert(target);
            }
        }
    }
    let canonical: BTreeSet<PathBuf> =
        all.iter().map(|page| page.canonicalize().unwrap()).collect();
    let start = out.join("index.html").canonicalize().unwrap();
    let unreached: Vec<_> =
        canonical.iter().filter(|page| **page != start && !linked.contains(*page)).collect();
    assert!(unreached.is_empty(), "{unreached:?}");
}

#[test]
fn a_site_is_the_same_every_time_and_overwrites_nothing() {
    let (one, two) = (Room::new(), Room::new());
    let (first, second) = (written(&one), written(&two));
    let (before, after) = (pages(&first), pages(&second));
    assert_eq!(before.len(), after.len());
    for (one, two) in before.iter().zip(&after) {
        assert_eq!(std::fs::read(one).unwrap(), std::fs::read(two).unwrap(), "{}", one.display());
    }
    let error = write_site(&SiteOptions::default(), &first, &mut |_| {}).unwrap_err();
    assert!(error.message.contains("not empty") && error.hint.is_some(), "{error}");
}

#[test]
fn a_page_says_what_a_run_achieved() {
    let room = Room::new();
    let out = written(&room);
    let home = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(home.contains("quick") && home.contains("AS 1."));
    let texts: Vec<String> =
        pages(&out).iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let has =
        |words: &[&str]| texts.iter().any(|text| words.iter().all(|word| text.contains(word)));
    assert!(has(&["Tasks and graphs", "ES(t)", "Where it comes from", "passnet bench TASKS"]));
    assert!(has(&["slow</h1>", "quick"]) || has(&["quick against slow"]));
    assert!(has(&["Run against run", "eager (by definition)", "The best 3 runs, task by task"]));
    for name in ["quick", "middle", "slow"] {
        let first = format!("{name}</a> by the owner");
        let held = ["3 runs, task by task</h1>", &first, "the others are held against this one"];
        assert!(has(&held), "{name} has a page on which the others are held against it");
    }
    assert!(has(&["TorchInductor", "NVIDIA A30", "0.706"]));
    assert!(has(&["Dataset</h1>", "graph/0/index.html", "operations/index.html", "By structure"]));
    assert!(has(&[
        "Operations of the dataset",
        "The most used first",
        "dataset/operation/relu/index.html"
    ]));
    assert!(has(&["relu</h1>", "of this operation in the dataset", "graph/"]));
}
