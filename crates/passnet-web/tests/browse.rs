//! Passes, their kernels and the dataset on a server's pages.

mod support;

use passnet_bench::report::{RunRecord, leaderboard};
use passnet_bench::score::Parameters;
use passnet_web::Error;
use passnet_web::pages::{Pages, Query, Route};
use passnet_web::rejudge::{Answer as Judged, Job, Rejudger};
use passnet_web::server::{Server, ServerLimits, State, step};
use passnet_web::site::add_run;
use passnet_web::store::{Shelf, Store};
use passnet_web::tasks::TaskIndex;
use passnet_web::watch::{self, WatchedPlan};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::passes::{pass_run, repository, tasks};
use support::{Board, Room, ask, check_page, eager_run};

/// Watches in this process, or fails; counts how often it was asked.
#[derive(Debug, Default)]
struct Here {
    asked: Arc<AtomicUsize>,
    is_failing: bool,
}

impl Rejudger for Here {
    fn judge(&self, _: &Job) -> Result<Judged, Error> {
        Err(Error::lacking("nothing is judged here"))
    }

    fn watch(&self, job: &watch::Job) -> Result<Vec<WatchedPlan>, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.is_failing {
            true => Err(Error::lacking("the process was killed")),
            false => watch::watch(job),
        }
    }
}

fn state(store: Store, tasks: TaskIndex, is_failing: bool) -> (State, Arc<AtomicUsize>) {
    let mut state = State::new(store, tasks, ServerLimits::default(), Box::new(|_| {}));
    let here = Here { is_failing, ..Here::default() };
    let asked = here.asked.clone();
    state.rejudger = Some(Box::new(here));
    (state, asked)
}

fn pass_page(state: &State, id: &str, task: usize) -> String {
    let pages = Pages { store: &state.store, tasks: Some(&state.tasks), is_static: false };
    let page = pages.write(&Route::Pass(id.into(), task), &Query::default()).unwrap().unwrap();
    check_page(&page, "pass");
    page
}

#[test]
fn kernels_of_entries_are_watched_and_their_findings_shown() {
    let room = Room::new();
    let store = Store::open(&room.path("store")).unwrap();
    let add = |name: &str, change: fn(String) -> String| {
        let folder = pass_run(&room, name, &["one"], |_, pass| change(pass));
        add_run(&store, &folder, "alice").unwrap()
    };
    let honest = add("honest", |pass| pass);
    let again = add("again", |pass| pass);
    let careless = add("careless", |pass| {
        let changed = pass.replace(
            "(shortcut + scaled).to(dtype), mask=writable)",
            "(shortcut + scaled).to(dtype))",
        );
        assert_ne!(changed, pass);
        changed
    });
    let (state, asked) = state(store, tasks(&room, &["one"]), false);
    let before = pass_page(&state, &honest, 0);
    assert!(
        before.contains("launch layer_scale_add_kernel")
            && before.contains("were not watched here")
    );
    while step(&state).unwrap() {}
    assert_eq!(
        asked.load(Ordering::Relaxed),
        2,
        "the same passes are watched once, whoever has them"
    );
    for id in [&honest, &again] {
        let page = pass_page(&state, id, 0);
        assert!(page.contains("A watched run of its kernels found nothing."), "{page}");
    }
    let page = pass_page(&state, &careless, 0);
    assert!(
        page.contains("What a watched run of its kernels found") && page.contains("<td>error</td>"),
        "{page}"
    );
    assert!(!page.contains("/tmp/"), "where files lay is nobody's business");
    // Later nothing is done again, with other tasks it is.
    while step(&state).unwrap() {}
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    let other = tasks(&room, &["one", "two"]);
    assert_ne!(other.digest(), state.tasks.digest());
    assert!(state.store.next_unwatched(&other.digest()).unwrap().is_some());
    let server = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), state).unwrap();
    let path = format!("/api/v1/runs/{careless}/tasks/0/passes");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let told = ask(server.address(), &request).json();
    let plan = &told["sets"][0]["passes"][0]["plans"][0];
    assert_eq!(plan["watched"][0]["severity"], "error", "{told}");
    server.stop();
}

#[test]
fn kernels_that_cannot_be_watched_do_not_hold_up_the_rest() {
    let room = Room::new();
    let store = Store::open(&room.path("store")).unwrap();
    let names = ["a", "b", "c", "d", "e"];
    let folder = pass_run(&room, "run", &names, |task, pass| format!("{pass}# for {task}\n"));
    let id = add_run(&store, &folder, "alice").unwrap();
    let (state, asked) = state(store, tasks(&room, &names), true);
    while step(&state).unwrap() {}
    assert_eq!(asked.load(Ordering::Relaxed), 3, "after three failures the rest is let be");
    let page = pass_page(&state, &id, 0);
    assert!(page.contains("could not be watched here: the process was killed."), "{page}");
    assert!(pass_page(&state, &id, 4).contains("were not watched here"));
}

#[test]
fn the_dataset_is_searched_by_operation_task_and_structure() {
    let board = Board::start(ServerLimits { requests_per_second: 0.0, ..ServerLimits::default() });
    assert!(board.get("/dataset/").text().contains("no dataset"));
    assert_eq!(board.get("/dataset/operation/relu/").status, 404);
    let graphs =
        board.store().import_dataset(&repository().join("bench/set/evaluation.pnds")).unwrap();
    // What was asked before may be answered as it was for a moment.
    let page = |path: &str| {
        let pages = Pages { store: board.store(), tasks: None, is_static: false };
        let (path, question) = path.split_once('?').unwrap_or((path, ""));
        let page = pages.write(&Route::parse(path).unwrap(), &Query::parse(question)).unwrap();
        page.inspect(|page| check_page(page, path))
    };
    let first = page("dataset/").unwrap();
    assert!(
        first.contains(&format!("{graphs} graphs")) && first.contains("By structure"),
        "{first}"
    );
    for shelf in Shelf::ALL {
        let names = board.store().shelf(shelf).unwrap();
        let list = page(&format!("dataset/{}s/", shelf.name())).unwrap();
        let most = &names[0];
        assert!(list.contains(&format!(">{}</a>", most.name)), "{}", most.name);
        let of = Some((shelf, most.name.as_str()));
        let (found, all) = board.store().corpus(of, 0, 10_000).unwrap();
        assert_eq!((found.len(), all as i64), (all, most.graphs));
        let one = page(&format!("dataset/{}/{}/", shelf.name(), most.name)).unwrap();
        assert!(one.contains(&found[0].path), "{one}");
        assert!(page(&format!("dataset/{}/nothing/", shelf.name())).is_none());
    }
    let answer = board.get("/dataset/operations/?op=RELU");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/dataset/operation/relu/")));
    let some = page("dataset/operations/?op=norm").unwrap();
    assert!(some.contains("layer_norm</a>") && !some.contains(">relu</a>"), "{some}");
    let none = page("dataset/operations/?op=%3Cscript%3E").unwrap();
    assert!(none.contains("0 operations with"), "{none}");
    // A graph leads to everything it shares with others.
    let graph = page("dataset/graph/0/").unwrap();
    for part in ["dataset/operation/", "dataset/structure/"] {
        assert!(graph.contains(&format!("../../../{part}")), "{part} in {graph}");
    }
}

#[test]
fn the_leaderboard_ranks_as_the_report_does() {
    let board = Board::start(ServerLimits { requests_per_second: 0.0, ..ServerLimits::default() });
    let speeds = [1.40, 1.395, 1.38, 1.36, 1.2, 0.9];
    let mut records = Vec::new();
    for (index, speed) in speeds.into_iter().enumerate() {
        let folder = board.room.run(&format!("run {index}"), &eager_run(speed));
        let id = add_run(board.store(), &folder, "alice").unwrap();
        records.push(RunRecord { name: id, ..RunRecord::read(&folder).unwrap() });
    }
    let ranking = board.store().boards().unwrap().remove(0);
    board.store().rank(&ranking).unwrap();
    let groups = leaderboard(&records, Parameters::default());
    let [group] = &groups[..] else { panic!("{groups:?}") };
    assert!(group.standings.iter().any(|it| it.rank > 1));
    assert!(group.standings.windows(2).any(|pair| pair[0].rank == pair[1].rank));
    for standing in &group.standings {
        let entry = board.store().entry(&standing.run).unwrap().unwrap();
        assert_eq!(entry.place, Some(standing.rank as i64), "{}", entry.name);
    }
}

#[test]
fn questions_that_a_page_does_not_answer_cost_nothing() {
    let board = Board::start(ServerLimits { requests_per_second: 0.0, ..ServerLimits::default() });
    let id = add_run(board.store(), &board.room.run("run", &eager_run(1.2)), "alice").unwrap();
    let pages: Vec<String> =
        (0..6).map(|index| board.get(&format!("/run/{id}/?q={index}&x={index}")).text()).collect();
    assert!(pages.iter().all(|page| *page == pages[0]) && pages[0].contains("Tasks and graphs"));
    let metrics = board.get("/metrics").text();
    let hits = metrics.lines().find_map(|line| line.strip_prefix("passnet_cache_hits_total "));
    assert!(hits.unwrap().parse::<u64>().unwrap() >= 4, "{metrics}");
}
