//! How beans need each other: who gets which, in which order they are made, and everything that is wrong with that.
//!
//! Nothing is made here, so all of it is known before any constructor is called.

use std::any::TypeId;
use std::collections::HashMap;

use super::argument::{BeanArgument, Choice, choose};
use super::registry::BeanName;
use super::wiring_error::{BeanOwner, NeededFor, WiringError, WiringStep};
use super::{BeanRequest, BeanType};
use crate::nearest::nearest;

/// A bean before it is made.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: BeanName,
    pub(crate) owner: BeanOwner,
    /// Every type that it can be asked for by.
    pub(crate) meets: Vec<BeanRequest>,
    pub(crate) needs: Vec<Need>,
    /// Its type is not known, which is said already, and those that it can be asked for by are a guess.
    pub(crate) is_guess: bool,
}

/// What needs beans and is none.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) owner: BeanOwner,
    pub(crate) needs: Vec<Need>,
}

/// One bean that somebody needs.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) needed_for: NeededFor,
    pub(crate) request: BeanRequest,
    /// Its name, where it is asked for by name.
    pub(crate) name: Option<String>,
}

impl Need {
    /// What these arguments need.
    pub(crate) fn of_arguments(arguments: &[BeanArgument]) -> Vec<Self> {
        let numbered = arguments.iter().enumerate();
        let needs = numbered.flat_map(|(index, argument)| {
            argument.requests.iter().map(move |request| Self {
                needed_for: NeededFor::Argument { name: argument.name, number: index + 1 },
                request: *request,
                name: argument.bean.map(str::to_owned),
            })
        });
        needs.collect()
    }
}

/// Who gets which bean. All are numbered as they were given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wiring {
    /// An order in which each comes after all that it needs, and otherwise the given one.
    pub(crate) order: Vec<usize>,
    /// For each bean what it needs.
    pub(crate) needs: Vec<Vec<usize>>,
}

/// Finds for everybody what they need.
pub(crate) fn wire(nodes: &[Node], users: &[User]) -> Result<Wiring, Vec<WiringError>> {
    let mut wirer = Wirer::new(nodes);
    wirer.check_names();
    let needs: Vec<Vec<_>> = nodes.iter().map(|node| wirer.find_all(&node.owner, &node.needs)).collect();
    let used: Vec<Vec<_>> = users.iter().map(|user| wirer.find_all(&user.owner, &user.needs)).collect();
    let Wirer { missing, mut errors, .. } = wirer;
    let paths = Paths { nodes, users, needs: &needs, used: &used };
    errors.extend(missing.into_iter().map(|(owner, need)| {
        let type_name = (need.request.type_name)();
        let mut bean_types: Vec<_> = BeanType::all()
            .filter(|bean_type| bean_type.meets().contains(&need.request))
            .map(|bean_type| bean_type.name)
            .collect();
        bean_types.sort_unstable();
        let path = paths.to(owner, need.needed_for.clone());
        WiringError::Missing { path, type_name, bean_types }
    }));
    let needs: Vec<Vec<_>> = needs.into_iter().map(|found| found.into_iter().flatten().collect()).collect();
    let mut order = Vec::with_capacity(nodes.len());
    errors.extend(sort(nodes, &needs, &mut order));
    if errors.is_empty() { Ok(Wiring { order, needs }) } else { Err(errors) }
}

struct Wirer<'a> {
    nodes: &'a [Node],
    by_name: HashMap<&'a str, Vec<usize>>,
    by_type: HashMap<TypeId, Vec<usize>>,
    /// What no bean is there for.
    missing: Vec<(&'a BeanOwner, &'a Need)>,
    errors: Vec<WiringError>,
}

impl<'a> Wirer<'a> {
    fn new(nodes: &'a [Node]) -> Self {
        let (mut by_name, mut by_type) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (index, node) in nodes.iter().enumerate() {
            by_name.entry(&*node.name).or_default().push(index);
            for request in &node.meets {
                by_type.entry((request.type_id)()).or_default().push(index);
            }
        }
        Self { nodes, by_name, by_type, missing: Vec::new(), errors: Vec::new() }
    }

    fn check_names(&mut self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let same = self.by_name.get(&*node.name).map_or(&[][..], Vec::as_slice);
            if same.len() > 1 && same.first() == Some(&index) {
                let owners = same.iter().filter_map(|index| self.nodes.get(*index));
                self.errors.push(WiringError::SameName {
                    name: node.name.to_string(),
                    owners: owners.map(|node| node.owner.clone()).collect(),
                });
            }
        }
    }

    /// For each need the bean that meets it; `None` is reported, or is not to be.
    fn find_all(&mut self, owner: &'a BeanOwner, needs: &'a [Need]) -> Vec<Option<usize>> {
        needs.iter().map(|need| self.find(owner, need)).collect()
    }

    fn find(&mut self, owner: &'a BeanOwner, need: &'a Need) -> Option<usize> {
        if let Some(name) = &need.name {
            return self.named(owner, need, name);
        }
        let candidates = self.by_type.get(&(need.request.type_id)()).map_or(&[][..], Vec::as_slice);
        // Two of one name are wrong already, and could not be told apart by it.
        let mut candidates: Vec<_> = candidates.iter().filter_map(|index| self.entry(*index)).collect();
        candidates.sort_by_key(|(_, index)| *index);
        candidates.dedup_by_key(|(name, _)| *name);
        match choose(need.needed_for.argument(), candidates.into_iter()) {
            Choice::One(index) => Some(index),
            Choice::None => {
                self.missing.push((owner, need));
                None
            }
            Choice::Several(names) => {
                self.errors.push(WiringError::Ambiguous {
                    owner: owner.clone(),
                    needed_for: need.needed_for.clone(),
                    type_name: (need.request.type_name)(),
                    names,
                });
                None
            }
        }
    }

    fn named(&mut self, owner: &BeanOwner, need: &Need, name: &str) -> Option<usize> {
        let found = self.by_name.get(name).and_then(|same| same.first().copied());
        let Some((index, node)) = found.and_then(|index| Some((index, self.nodes.get(index)?))) else {
            let fitting = self.nodes.iter().filter(|node| node.meets.contains(&need.request));
            let mut known: Vec<_> = fitting.map(|node| node.name.to_string()).collect();
            known.dedup();
            self.errors.push(WiringError::NoSuchName {
                owner: owner.clone(),
                needed_for: need.needed_for.clone(),
                name: name.to_owned(),
                type_name: (need.request.type_name)(),
                nearest: nearest(name, known.iter().map(String::as_str)),
                known,
            });
            return None;
        };
        if !node.is_guess && !node.meets.contains(&need.request) {
            self.errors.push(WiringError::OtherType {
                owner: owner.clone(),
                needed_for: need.needed_for.clone(),
                name: name.to_owned(),
                expected: (need.request.type_name)(),
                found: node.meets.first().map_or("something else", |own| (own.type_name)()),
            });
            return None;
        }
        Some(index)
    }

    fn entry(&self, index: usize) -> Option<(&'a str, usize)> {
        self.nodes.get(index).map(|node| (&*node.name, index))
    }
}

/// The ways from those that need beans to those that they need.
struct Paths<'a> {
    nodes: &'a [Node],
    users: &'a [User],
    needs: &'a [Vec<Option<usize>>],
    used: &'a [Vec<Option<usize>>],
}

impl Paths<'_> {
    /// How it came that somebody needs something: from a listener, if one needs it in the end.
    fn to(&self, owner: &BeanOwner, needed_for: NeededFor) -> Vec<WiringStep> {
        let mut path = vec![WiringStep { owner: owner.clone(), needed_for }];
        let mut last = self.nodes.iter().position(|node| node.owner == *owner);
        let mut seen = Vec::new();
        while let Some(index) = last {
            seen.push(index);
            let user = needing(self.users.iter().map(|user| &user.needs), self.used, index).next();
            if let Some((user, need)) = user {
                path.extend(self.users.get(user).map(|user| step(&user.owner, need)));
                break;
            }
            let needing = needing(self.nodes.iter().map(|node| &node.needs), self.needs, index);
            let next = needing.filter(|(node, _)| !seen.contains(node)).last();
            last = next.map(|(node, _)| node);
            path.extend(next.and_then(|(node, need)| Some(step(&self.nodes.get(node)?.owner, need))));
        }
        path.reverse();
        path
    }
}

/// Those whose needs are met by this bean, by their numbers.
fn needing<'a>(
    needs: impl Iterator<Item = &'a Vec<Need>>,
    found: &'a [Vec<Option<usize>>],
    bean: usize,
) -> impl Iterator<Item = (usize, &'a Need)> {
    needs.zip(found).enumerate().filter_map(move |(index, (needs, found))| {
        let mut met = needs.iter().zip(found);
        met.find(|(_, found)| **found == Some(bean)).map(|(need, _)| (index, need))
    })
}

fn step(owner: &BeanOwner, need: &Need) -> WiringStep {
    WiringStep { owner: owner.clone(), needed_for: need.needed_for.clone() }
}

/// How far a bean has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Unseen,
    /// Something that it needs is being looked at.
    Open,
    Done,
}

/// Puts each bean behind all that it needs. Every edge that leads back to a bean whose needs are being looked at closes a
/// cycle, and there is no cycle without such an edge, so none is missed.
///
/// A stack of its own, as a chain of beans may be longer than a thread's stack is deep.
fn sort(nodes: &[Node], needs: &[Vec<usize>], order: &mut Vec<usize>) -> Vec<WiringError> {
    let mut cycles = Vec::new();
    let mut visits = vec![Visit::Unseen; nodes.len()];
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for root in 0..nodes.len() {
        if visits.get(root) == Some(&Visit::Unseen) {
            stack.push((root, 0));
        }
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            let needed = needs.get(node).and_then(|needs| needs.get(*next)).copied();
            *next += 1;
            let state = needed.and_then(|needed| visits.get(needed).copied());
            match (needed, state) {
                (Some(needed), Some(Visit::Unseen)) => {
                    mark(&mut visits, node, Visit::Open);
                    stack.push((needed, 0));
                }
                (Some(needed), _) if needed == node => cycles.push(cycle(nodes, needs, &[node])),
                (Some(needed), Some(Visit::Open)) => {
                    let open: Vec<_> = stack.iter().map(|(node, _)| *node).collect();
                    let start = open.iter().position(|open| *open == needed).unwrap_or_default();
                    cycles.push(cycle(nodes, needs, open.get(start..).unwrap_or_default()));
                }
                (Some(_), _) => {}
                (None, _) => {
                    mark(&mut visits, node, Visit::Done);
                    order.push(node);
                    stack.pop();
                }
            }
        }
    }
    cycles
}

fn mark(visits: &mut [Visit], node: usize, visit: Visit) {
    if let Some(state) = visits.get_mut(node) {
        *state = visit;
    }
}

/// The error for beans each of which needs the next one, and the last of which needs the first.
fn cycle(nodes: &[Node], needs: &[Vec<usize>], beans: &[usize]) -> WiringError {
    let following = beans.iter().skip(1).chain(beans.first());
    let steps = beans.iter().zip(following).filter_map(|(bean, next)| {
        let position = needs.get(*bean)?.iter().position(|needed| needed == next)?;
        let node = nodes.get(*bean)?;
        Some(step(&node.owner, node.needs.get(position)?))
    });
    WiringError::Cycle { path: steps.collect() }
}

#[cfg(test)]
mod tests;
