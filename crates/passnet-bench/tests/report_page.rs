//! Pages of runs: what a run says stays text, and everything of it is there.

mod markup;
mod runs;

use markup::elements;
use passnet_bench::report::{RunRecord, html};
use passnet_bench::run::{Event, RunStore};
use passnet_bench::score::Parameters;
use passnet_bench::verdict::{Evidence, Verdict, VerdictKind};
use runs::{mixed, ran, start};

const HOSTILE: [&str; 6] = [
    "\"><script>alert(1)</script>",
    "</code></pre></details></section></body></html><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "&lt;b&gt; <!-- ]]> <![CDATA[ http://evil.example/x.js",
    "\u{202e}\u{0}\u{1b}[31m\r\n",
    "<a href=javascript:alert(1)>\u{2028}",
];

/// A run in which everything a pass or a sample could have chosen is hostile.
fn hostile(folder: &std::path::Path) -> RunRecord {
    let mut store = RunStore::open(folder).unwrap();
    let mut begun = start();
    if let Event::Start(start) = &mut begun {
        start.machine.processor = HOSTILE[0].into();
        if let Some(place) = &mut start.identity {
            place.processor = HOSTILE[0].into();
            place.build.commit = HOSTILE[3].into();
        }
        start.version = HOSTILE[1].into();
    }
    store.append(&begun).unwrap();
    for (index, text) in HOSTILE.iter().enumerate() {
        let mut graph = ran(text, &format!("graphs/{index}/{text}"), 1.5, -6);
        graph.artefacts = vec![
            ("model.py".into(), store.keep(text.as_bytes()).unwrap()),
            (format!("{text}.py"), store.keep(format!("{text}{text}").as_bytes()).unwrap()),
            ("missing.py".into(), "../../../../etc/passwd".into()),
        ];
        let evaluation = &mut graph.evaluation;
        evaluation.dtype = (*text).into();
        evaluation.operations = vec![(*text).into()];
        evaluation.checks[1].detail = (*text).into();
        evaluation.rewrites[0].pass = (*text).into();
        evaluation.remarks = vec![Evidence::Message { text: (*text).into() }];
        evaluation.judged.verdict = Verdict::new(VerdictKind::Accuracy).because(*text);
        store.append(&Event::Graph(Box::new(graph))).unwrap();
    }
    store.append(&Event::End { graphs: HOSTILE.len() }).unwrap();
    drop(store);
    RunRecord { name: HOSTILE[0].into(), ..RunRecord::read(folder).unwrap() }
}

/// As a browser shows it: words of sources are coloured, and lie in spans.
fn unescaped(page: &str) -> String {
    let classes = ["k", "s", "c", "n", "d"].map(|class| format!("<span class=\"{class}\">"));
    let plain = classes.iter().fold(page.to_string(), |page, span| page.replace(span, ""));
    plain
        .replace("</span>", "")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[test]
fn hostile_text_stays_text_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = hostile(folder.path());
    let two = [run.clone(), RunRecord { name: HOSTILE[2].into(), ..run.clone() }];
    for page in [html::page(&[run], Parameters::default()), html::page(&two, Parameters::default())]
    {
        for (name, attributes) in elements(&page) {
            let known = [
                "html",
                "head",
                "meta",
                "title",
                "style",
                "body",
                "header",
                "h1",
                "h2",
                "h3",
                "p",
                "dl",
                "dt",
                "dd",
                "figure",
                "figcaption",
                "svg",
                "desc",
                "line",
                "text",
                "rect",
                "circle",
                "polyline",
                "div",
                "table",
                "caption",
                "thead",
                "tbody",
                "tr",
                "th",
                "td",
                "a",
                "section",
                "span",
                "br",
                "ul",
                "li",
                "details",
                "summary",
                "pre",
                "code",
                "b",
            ];
            assert!(known.contains(&name.as_str()), "{name}");
            for (key, value) in attributes {
                let known = [
                    "lang",
                    "charset",
                    "http-equiv",
                    "content",
                    "name",
                    "scope",
                    "class",
                    "id",
                    "href",
                    "role",
                    "viewBox",
                    "width",
                    "height",
                    "aria-label",
                    "aria-labelledby",
                    "x",
                    "y",
                    "x1",
                    "x2",
                    "y1",
                    "y2",
                    "cx",
                    "cy",
                    "r",
                    "points",
                    "text-anchor",
                    "tabindex",
                ];
                assert!(known.contains(&key.as_str()), "{key}");
                assert!(key != "href" || value.starts_with('#'), "{value}");
            }
        }
        for forbidden in ['\u{202e}', '\u{0}', '\u{1b}', '\r', '\u{2028}'] {
            assert!(!page.contains(forbidden), "{forbidden:?}");
        }
        assert!(!page.contains("@import") && !page.contains("url("));
    }
}

#[test]
fn the_page_holds_every_graph_and_text_and_is_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = hostile(folder.path());
    let page = html::page(std::slice::from_ref(&run), Parameters::default());
    assert_eq!(page, html::page(&[RunRecord { ..run.clone() }], Parameters::default()));
    let shown = unescaped(&page);
    for (index, text) in HOSTILE
        .iter()
        .enumerate()
        .filter(|(_, text)| !text.contains('\u{202e}') && !text.contains('\u{2028}'))
    {
        assert!(shown.contains(&format!("graphs/{index}/{text}")), "{text}");
        assert!(shown.contains(&format!("{text}{text}")), "the pass of {text}");
    }
    assert_eq!(shown.matches("is not in the run's store").count(), HOSTILE.len());
    assert!(!shown.contains("root:"), "a digest is no path");
    let mixed = RunRecord::of("mixed", mixed());
    let page = unescaped(&html::page(std::slice::from_ref(&mixed), Parameters::default()));
    elements(&html::page(std::slice::from_ref(&mixed), Parameters::default()));
    for graph in &mixed.graphs {
        assert!(page.contains(&format!(">{}</th>", graph.event.evaluation.judged.graph)));
    }
    for text in ["with infinities", "pass.py:3: exec is not allowed", "1 = eager", "dtype_mismatch"]
    {
        assert!(page.contains(text), "{text}");
    }
}
