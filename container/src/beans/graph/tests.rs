use std::collections::HashSet;

use corriere_core::ConnectionFactory;
use corriere_templates::{JmsTemplate, MessageConverter};
use proptest::prelude::*;

use super::*;
use crate::config::Place;

// Types of beans, of which only the names matter.
struct Pool;
struct Repository;
struct Mailer;

fn node<T: 'static>(name: &str, needs: Vec<Need>) -> Node {
    Node {
        name: name.into(),
        owner: BeanOwner::Configuration(Place::in_code(format!("beans.{name}"))),
        meets: vec![BeanRequest::of::<T>()],
        needs,
        is_guess: false,
    }
}

fn listener(id: &str, needs: Vec<Need>) -> User {
    User { owner: BeanOwner::Listener { id: id.to_owned() }, needs }
}

/// An argument that asks by type.
fn argument<T: ?Sized + 'static>(name: &'static str) -> Need {
    let needed_for = NeededFor::Argument { name: Some(name), number: 1 };
    Need { needed_for, request: BeanRequest::of::<T>(), name: None }
}

/// An argument that asks by name.
fn named<T: 'static>(argument_name: &'static str, bean: &str) -> Need {
    Need { name: Some(bean.to_owned()), ..argument::<T>(argument_name) }
}

fn order(nodes: &[Node], users: &[User]) -> Vec<String> {
    let wiring = wire(nodes, users).unwrap_or_else(|errors| panic!("{errors:?}"));
    wiring.order.iter().map(|index| nodes[*index].name.to_string()).collect()
}

fn refused(nodes: &[Node], users: &[User]) -> Vec<String> {
    let errors = wire(nodes, users).unwrap_err();
    let module = concat!(module_path!(), "::");
    errors.iter().map(|error| error.to_string().replace(module, "")).collect()
}

#[test]
fn each_comes_after_what_it_needs_and_otherwise_in_the_given_order() {
    let nodes = [
        node::<u8>("zebra", vec![]),
        node::<Mailer>("mailer", vec![argument::<Repository>("orders")]),
        node::<Repository>("repository", vec![argument::<Pool>("pool")]),
        node::<u16>("apple", vec![]),
        node::<Pool>("pool", vec![]),
    ];
    assert_eq!(order(&nodes, &[]), ["zebra", "pool", "repository", "mailer", "apple"]);
}

#[test]
fn of_several_that_one_is_meant_that_is_named_like_the_argument_or_that_is_asked_for_by_name() {
    for (need, expected) in [(argument::<Pool>("second"), 1), (named::<Pool>("second", "first"), 0)] {
        let nodes = [
            node::<Pool>("first", vec![]),
            node::<Pool>("second", vec![]),
            node::<Repository>("repository", vec![need]),
        ];
        assert_eq!(wire(&nodes, &[]).unwrap().needs[2], [expected]);
    }
}

#[test]
fn a_bean_that_has_several_types_is_found_by_each() {
    let mut both = node::<Pool>("both", vec![]);
    both.meets.push(BeanRequest::of::<Mailer>());
    let nodes = [node::<u8>("user", vec![argument::<Mailer>("mailer"), argument::<Pool>("pool")]), both];
    assert_eq!(wire(&nodes, &[]).unwrap(), Wiring { order: vec![1, 0], needs: vec![vec![1, 1], vec![]] });
}

/// What it is about, the beans, who else needs some, and what is told.
type Case = (&'static str, Vec<Node>, Vec<User>, Vec<&'static str>);

#[test]
fn every_mistake_is_told_with_its_place_and_what_would_mend_it() {
    let pool = || node::<Pool>("pool", vec![]);
    let user = |need| node::<Repository>("user", vec![need]);
    let unnamed = Need { needed_for: NeededFor::Argument { name: None, number: 3 }, ..argument::<Pool>("") };
    let twice = |owner| Node { owner, ..node::<u8>("pool", vec![]) };
    let name = || "pool".to_owned();
    let cases: Vec<Case> = vec![
        (
            "a cycle",
            vec![
                node::<Pool>("a", vec![argument::<Repository>("b")]),
                node::<Repository>("b", vec![argument::<Mailer>("by_mail")]),
                node::<Mailer>("c", vec![argument::<Pool>("a")]),
            ],
            vec![],
            vec![
                "`beans.a` needs `beans.b` for its argument `b`, which needs `beans.c` for its argument `by_mail`, which \
                  needs `beans.a` for its argument `a`; none of them can be made before the others",
            ],
        ),
        (
            "a bean that needs itself",
            vec![node::<Pool>("a", vec![argument::<Pool>("pool")])],
            vec![],
            vec![
                "`beans.a` needs `beans.a` for its argument `pool`; none of them can be made before the others",
            ],
        ),
        (
            "two that could be meant",
            vec![node::<Pool>("one", vec![]), node::<Pool>("two", vec![]), user(argument::<Pool>("pool"))],
            vec![listener("on_order", vec![unnamed.clone()])],
            vec![
                "`beans.user`: its argument `pool` could be any of 2 beans of the type `Pool`: `one`, `two`; name the \
                 argument after one of them, or put `#[bean(\"one\")]` on it",
                "listener `on_order`: its argument 3 could be any of 2 beans of the type `Pool`: `one`, `two`; name the \
                 argument after one of them, or put `#[bean(\"one\")]` on it",
            ],
        ),
        (
            "one that is missing",
            vec![user(argument::<Pool>("pool"))],
            vec![],
            vec![
                "`beans.user` needs a bean of the type `Pool` for its argument `pool`, and there is none; no bean type \
                  makes one, so hand it over with `.bean(value)`, or put `#[corriere::bean(type = \"…\")]` on its \
                  constructor",
            ],
        ),
        (
            "one that is missing, with the way to it",
            vec![
                user(argument::<Graph>("graph")),
                node::<Mailer>("mailer", vec![argument::<Repository>("orders")]),
            ],
            vec![
                listener("on_email", vec![argument::<Mailer>("mailer")]),
                listener("on_order", vec![argument::<Mailer>("mailer")]),
            ],
            vec![
                "listener `on_email` needs `beans.mailer` for its argument `mailer`, which needs `beans.user` for its \
                  argument `orders`, which needs a bean of the type `Graph` for its argument `graph`, and there is none; \
                  add `[beans.NAME]` with `type = \"graph_of_the_tests\"`",
            ],
        ),
        (
            "a template and a connection factory that are missing",
            vec![],
            vec![listener(
                "on_order",
                vec![
                    argument::<JmsTemplate>("emails"),
                    argument::<ConnectionFactory>("factory"),
                    argument::<dyn MessageConverter>("converter"),
                ],
            )],
            vec![
                "listener `on_order` needs a bean of the type `corriere_templates::template::JmsTemplate` for its argument \
                 `emails`, and there is none; add `[templates.NAME]`",
                "listener `on_order` needs a bean of the type `corriere_core::client::factory::ConnectionFactory` for its \
                 argument `factory`, and there is none; add `[connection_factories.NAME]` with its `url`",
                "listener `on_order` needs a bean of the type `dyn corriere_templates::converter::MessageConverter` for its \
                 argument `converter`, and there is none; add `[message_converters.NAME]` with its `type`",
            ],
        ),
        (
            "a name that no bean has",
            vec![pool(), node::<Pool>("other", vec![]), user(named::<Pool>("store", "poll"))],
            vec![],
            vec![
                "`beans.user`: its argument `store` asks for the bean `poll`, and there is none of that name; did you mean \
                  `pool`?; of the type `Pool` there is: `pool`, `other`",
            ],
        ),
        (
            "a name of another type",
            vec![pool(), user(named::<Mailer>("mailer", "pool"))],
            vec![],
            vec![
                "`beans.user`: its argument `mailer` asks for the bean `pool`, which is a `Pool`, not a `Mailer`",
            ],
        ),
        (
            "three beans of one name",
            vec![
                pool(),
                twice(BeanOwner::Program { name: name() }),
                twice(BeanOwner::Configuration(Place::in_code("templates.pool"))),
            ],
            vec![listener("on_order", vec![argument::<u8>("other")])],
            vec![
                "3 beans are named `pool`: `beans.pool` and the program's `pool` and `templates.pool`; give one of them \
                  another name",
            ],
        ),
        (
            "a name that comes from a type",
            vec![pool(), twice(BeanOwner::NamedAfterType { name: name() })],
            vec![],
            vec![
                "2 beans are named `pool`: `beans.pool` and the program's `pool`, which is named after its type; give one \
                  of them another name, that of the program with `.named_bean(\"…\", value)`",
            ],
        ),
        (
            "all of them at once",
            vec![
                node::<Pool>("a", vec![argument::<Pool>("a"), argument::<u8>("number")]),
                node::<Repository>("a", vec![]),
            ],
            vec![listener("on_order", vec![named::<Mailer>("mailer", "a")])],
            vec![
                "2 beans are named `a`: `beans.a` and `beans.a`; give one of them another name",
                "listener `on_order`: its argument `mailer` asks for the bean `a`, which is a `Pool`, not a `Mailer`",
                "`beans.a` needs a bean of the type `u8` for its argument `number`, and there is none; no bean type makes \
                 one, so hand it over with `.bean(value)`, or put `#[corriere::bean(type = \"…\")]` on its constructor",
                "`beans.a` needs `beans.a` for its argument `a`; none of them can be made before the others",
            ],
        ),
    ];
    for (what, nodes, users, expected) in cases {
        assert_eq!(refused(&nodes, &users), expected, "{what}");
    }
}

struct Graph;

inventory::submit! {
    BeanType {
        name: "graph_of_the_tests",
        bean: BeanRequest::of::<Graph>(),
        is_converter: false,
        arguments: &[],
        prepare: |settings| settings.none().map(|()| unreachable!("it is not made")),
    }
}

#[test]
fn nothing_is_said_of_who_needs_a_bean_whose_type_is_misspelt() {
    let guess = |name, meets| Node { meets, is_guess: true, ..node::<u8>(name, vec![]) };
    let nodes = [
        guess("pool", vec![BeanRequest::of::<Pool>()]),
        guess("anything", vec![]),
        node::<Repository>("user", vec![argument::<Pool>("pool"), named::<Mailer>("mailer", "anything")]),
    ];
    assert_eq!(order(&nodes, &[]), ["pool", "anything", "user"]);
}

/// A thread's stack is not as deep as that.
#[test]
fn a_long_chain_is_no_danger() {
    const LENGTH: usize = 100_000;
    let name = |index: usize| format!("bean{index}");
    let chain = |last: Vec<Need>| -> Vec<Node> {
        let needs = |index| match index + 1 {
            LENGTH => last.clone(),
            next => vec![named::<Pool>("next", &name(next))],
        };
        (0..LENGTH).map(|index| node::<Pool>(&name(index), needs(index))).collect()
    };
    assert_eq!(wire(&chain(vec![]), &[]).unwrap().order[0], LENGTH - 1);
    let errors = wire(&chain(vec![named::<Pool>("first", "bean0")]), &[]).unwrap_err();
    assert!(matches!(&errors[..], [WiringError::Cycle { path }] if path.len() == LENGTH));
}

/// Whether the edges have no cycle, found in another way: by taking away what needs nothing, again and again.
fn is_acyclic(count: usize, edges: &HashSet<(usize, usize)>) -> bool {
    let mut left: HashSet<usize> = (0..count).collect();
    loop {
        let needs = |node: &usize| edges.iter().any(|(from, to)| from == node && left.contains(to));
        let free: Vec<usize> = left.iter().copied().filter(|node| !needs(node)).collect();
        if free.is_empty() {
            return left.is_empty();
        }
        left.retain(|node| !free.contains(node));
    }
}

/// The numbers of the beans on a cycle.
fn numbers(path: &[WiringStep]) -> Vec<usize> {
    let number = |step: &WiringStep| match &step.owner {
        BeanOwner::Configuration(place) => place.key().trim_start_matches("beans.n").parse().unwrap(),
        other => panic!("{other} is on a cycle"),
    };
    path.iter().map(number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_graph_is_put_in_order_or_every_cycle_of_it_is_found(
        count in 1_usize..12,
        edges in prop::collection::hash_set((0_usize..12, 0_usize..12), 0..24),
    ) {
        let edges: HashSet<_> = edges.into_iter().filter(|(from, to)| *from < count && *to < count).collect();
        let needs = |from| {
            let mut to: Vec<_> = edges.iter().filter(|edge| edge.0 == from).map(|edge| edge.1).collect();
            to.sort_unstable();
            to.into_iter().map(|to| named::<Pool>("next", &format!("n{to}"))).collect()
        };
        let nodes: Vec<_> = (0..count).map(|from| node::<Pool>(&format!("n{from}"), needs(from))).collect();
        match wire(&nodes, &[]) {
            Ok(wiring) => {
                prop_assert!(is_acyclic(count, &edges));
                let position = |node| wiring.order.iter().position(|ordered| *ordered == node).unwrap();
                for (from, to) in &edges {
                    prop_assert!(position(*to) < position(*from));
                }
                prop_assert_eq!(wiring.order.len(), count);
            }
            Err(errors) => {
                let mut rest = edges.clone();
                for error in &errors {
                    let WiringError::Cycle { path } = error else { panic!("{error}") };
                    let path = numbers(path);
                    for (index, from) in path.iter().enumerate() {
                        prop_assert!(edges.contains(&(*from, path[(index + 1) % path.len()])), "{error}");
                    }
                    rest.remove(&(path[path.len() - 1], path[0]));
                }
                prop_assert!(!errors.is_empty() && !is_acyclic(count, &edges));
                // A cycle that was not found would still be there.
                prop_assert!(is_acyclic(count, &rest));
            }
        }
    }
}
