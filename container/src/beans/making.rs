//! Makes the beans of an application, each after those that it needs.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::panic::{catch_panic, caught};

use super::{ArgumentBeans, BeanBuildError, BeanConstructor, BeanName, Beans, MadeBean, Wiring};
use crate::config::{ConfigError, Place, Problems};
use crate::listener::BoxFuture;

/// How a bean comes to be.
pub(crate) struct Recipe {
    pub(crate) name: BeanName,
    pub(crate) place: Place,
    pub(crate) source: Source,
}

/// Where a bean comes from.
pub(crate) enum Source {
    /// It is there.
    Given(Arc<MadeBean>),
    /// From its constructor.
    Constructor(BeanConstructor),
}

/// Calls the constructors, one after the other, in the order that was found for these recipes.
///
/// What needs a bean that failed is not called; everything else is, so that all that fails is told at once. Then, and when
/// the future is dropped, what was made goes in the reverse order; `time` is for closing it.
pub(crate) async fn make(
    recipes: Vec<Recipe>,
    wiring: &Wiring,
    time: Duration,
) -> Result<Beans, ConfigError> {
    let mut problems = Problems::default();
    let mut recipes: Vec<_> = recipes.into_iter().map(Some).collect();
    // Where each stands among the beans, which alone hold them, as they go in the reverse order.
    let mut made: Vec<Option<usize>> = vec![None; recipes.len()];
    let mut beans = Beans::new();
    for index in &wiring.order {
        let Some(Recipe { name, place, source }) = recipes.get_mut(*index).and_then(Option::take) else {
            continue;
        };
        let needs = wiring.needs.get(*index).map_or(&[][..], Vec::as_slice);
        let needed: Option<Vec<_>> = needs.iter().map(|needed| beans.at((*made.get(*needed)?)?)).collect();
        let Some(needed) = needed else { continue };
        let bean = match source {
            Source::Given(bean) => Ok(bean),
            Source::Constructor(constructor) => {
                construct(constructor, ArgumentBeans::new(needed)).await.map(Arc::new)
            }
        };
        match bean {
            Ok(bean) => {
                if let Some(made) = made.get_mut(*index) {
                    *made = Some(beans.push(name, bean));
                }
            }
            Err(source) => problems.push(ConfigError::Bean { place, source }),
        }
    }
    match problems.into_result(()) {
        Ok(()) => Ok(beans),
        Err(error) => {
            beans.close(time).await;
            Err(error)
        }
    }
}

async fn construct(constructor: BeanConstructor, needed: ArgumentBeans) -> Result<MadeBean, BeanBuildError> {
    type Making = BoxFuture<'static, Result<MadeBean, BeanBuildError>>;
    catch_panic::<Making>(|| constructor(needed))
        .await
        .unwrap_or_else(|panic| Err(BeanBuildError::Panic(panic)))
}

/// Reads the configuration of a bean, which is the user's code and may panic.
pub(crate) fn prepare(
    read: impl FnOnce() -> Result<BeanConstructor, BeanBuildError>,
) -> Result<BeanConstructor, BeanBuildError> {
    caught(read).unwrap_or_else(|panic| Err(BeanBuildError::Panic(panic)))
}

#[cfg(test)]
mod tests;
