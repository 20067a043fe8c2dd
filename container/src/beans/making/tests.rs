use std::collections::HashSet;
use std::future::pending;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Waker};

use proptest::prelude::*;

use super::*;
use crate::beans::{Bean, BeanOwner, BeanRequest, CloseKind, Need, NeededFor, Node, wire};

const TIME: Duration = Duration::from_secs(20);

/// What happened to the beans, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// Tells when it is dropped, and holds what it was made with.
struct Noted {
    name: String,
    log: Log,
    _needed: ArgumentBeans,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.log.lock().unwrap().push(format!("drop {}", self.name));
    }
}

/// How a constructor ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Made,
    Fails,
    Panics,
    Never,
}

fn recipe(name: &str, end: End, log: &Log) -> Recipe {
    let (made, log) = (name.to_owned(), Arc::clone(log));
    let constructor: BeanConstructor = Box::new(move |needed| {
        Box::pin(async move {
            log.lock().unwrap().push(format!("make {made}"));
            // A constructor that takes its time.
            tokio::task::yield_now().await;
            match end {
                End::Made => {}
                End::Fails => return Err(BeanBuildError::Constructor("no".into())),
                End::Panics => panic!("oh"),
                End::Never => pending().await,
            }
            let bean = Bean::new(Noted { name: made, log, _needed: needed });
            Ok(MadeBean::new(bean.clone()).closed_by(bean, CloseKind::Async, |bean| {
                Box::pin(async move {
                    bean.log.lock().unwrap().push(format!("close {}", bean.name));
                    Ok(())
                })
            }))
        })
    });
    Recipe {
        name: name.into(),
        place: Place::in_code(format!("beans.{name}")),
        source: Source::Constructor(constructor),
    }
}

/// Beans that need each other by these edges.
fn wiring(count: usize, edges: &HashSet<(usize, usize)>) -> Result<Wiring, usize> {
    let needs = |from: usize| {
        let to = edges.iter().filter(move |edge| edge.0 == from).map(|edge| Need {
            needed_for: NeededFor::Argument { name: None, number: 1 },
            request: BeanRequest::of::<Noted>(),
            name: Some(edge.1.to_string()),
        });
        to.collect()
    };
    let node = |index: usize| Node {
        name: index.to_string().into(),
        owner: BeanOwner::Program { name: index.to_string() },
        meets: vec![BeanRequest::of::<Noted>()],
        needs: needs(index),
        is_guess: false,
    };
    let nodes: Vec<_> = (0..count).map(node).collect();
    wire(&nodes, &[]).map_err(|errors| errors.len())
}

fn told(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[tokio::test]
async fn a_start_that_is_dropped_drops_what_was_made_in_the_reverse_order() {
    let log = Log::default();
    let ends = [End::Made, End::Made, End::Never, End::Made];
    let recipes = ends.iter().enumerate().map(|(index, end)| recipe(&index.to_string(), *end, &log));
    let wiring = wiring(4, &HashSet::from([(1, 0), (2, 1)])).unwrap();
    {
        let mut made = pin!(make(recipes.collect(), &wiring, TIME));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..10 {
            assert!(made.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(told(&log), ["make 0", "make 1", "make 2"]);
    }
    assert_eq!(told(&log), ["drop 1", "drop 0"], "and nothing was closed");
}

#[tokio::test]
async fn what_fails_is_told_once_and_what_was_made_is_closed_and_dropped_in_the_reverse_order() {
    let log = Log::default();
    let ends = [End::Made, End::Fails, End::Made, End::Panics, End::Made];
    let recipes = ends.iter().enumerate().map(|(index, end)| recipe(&index.to_string(), *end, &log));
    // Number 2 needs what fails, and 4 what stands.
    let wiring = wiring(5, &HashSet::from([(2, 1), (4, 0)])).unwrap();
    let error = make(recipes.collect(), &wiring, TIME).await.unwrap_err();
    let errors: Vec<_> = error.each().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "`beans.1`: the bean could not be made: no",
            "`beans.3`: the bean could not be made: the constructor panicked: oh"
        ]
    );
    assert_eq!(
        told(&log),
        ["make 0", "make 1", "make 3", "make 4", "close 4", "close 0", "drop 4", "drop 0"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn each_is_made_once_after_what_it_needs_and_goes_before_it(
        count in 1_usize..10,
        edges in prop::collection::hash_set((0_usize..10, 0_usize..10), 0..20),
        failing in prop::collection::hash_set(0_usize..10, 0..3),
    ) {
        let edges: HashSet<_> = edges.into_iter().filter(|(from, to)| *from < count && *to < count).collect();
        // Cycles are refused before, which the graph's own tests are about.
        let Ok(wiring) = wiring(count, &edges) else { return Ok(()) };
        let log = Log::default();
        let end = |index| if failing.contains(&index) { End::Fails } else { End::Made };
        let recipes = (0..count).map(|index| recipe(&index.to_string(), end(index), &log)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let beans = runtime.block_on(make(recipes, &wiring, TIME));
        prop_assert_eq!(beans.is_ok(), (0..count).all(|index| end(index) == End::Made));
        drop(beans);

        let told = told(&log);
        let at = |what: &str, index: usize| {
            let found = told.iter().enumerate().filter(|(_, told)| **told == format!("{what} {index}"));
            found.map(|(position, _)| position).collect::<Vec<_>>()
        };
        for index in 0..count {
            prop_assert!(at("make", index).len() <= 1);
            let is_made = at("make", index).len() == 1 && end(index) == End::Made;
            prop_assert_eq!(at("drop", index).len(), usize::from(is_made));
            let needed: Vec<_> = edges.iter().filter(|edge| edge.0 == index).map(|edge| edge.1).collect();
            let are_made = needed.iter().all(|needed| !at("drop", *needed).is_empty());
            prop_assert_eq!(at("make", index).len() == 1, are_made, "{} is made when it can be", index);
            for needed in needed.iter().filter(|_| is_made) {
                prop_assert!(at("make", *needed) < at("make", index));
                prop_assert!(at("drop", *needed) > at("drop", index));
            }
        }
    }
}
