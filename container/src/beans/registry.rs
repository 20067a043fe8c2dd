//! The beans of an application.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::panic::caught;
use tokio::time::{Instant, timeout};

use super::argument::{Choice, choose};
use super::{Bean, BeanArgument, BeanError, MadeBean};

/// The name of a bean.
pub type BeanName = Arc<str>;

/// What is left for each bean that is still to be closed when the time for all of them is over.
const GRACE: Duration = Duration::from_secs(1);

/// The beans of an application, in the order in which they were made.
///
/// They are dropped in the reverse order, so that a bean outlives those that were made with it.
#[derive(Default)]
pub struct Beans {
    entries: Vec<Entry>,
}

struct Entry {
    name: BeanName,
    bean: Arc<MadeBean>,
}

impl Beans {
    /// No beans.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a bean.
    ///
    /// # Errors
    /// [`BeanError::NameInUse`].
    pub fn add<T: Send + Sync + 'static>(
        &mut self,
        name: impl Into<BeanName>,
        bean: Bean<T>,
    ) -> Result<(), BeanError> {
        let name = name.into();
        if let Some(taken) = self.entries.iter().find(|entry| entry.name == name) {
            return Err(BeanError::NameInUse { name: name.to_string(), type_name: taken.bean.type_name() });
        }
        self.push(name, Arc::new(MadeBean::new(bean)));
        Ok(())
    }

    /// Adds a bean whose name is known to be its own, and tells where it stands.
    pub(super) fn push(&mut self, name: BeanName, bean: Arc<MadeBean>) -> usize {
        self.entries.push(Entry { name, bean });
        self.entries.len() - 1
    }

    /// The bean that stands there.
    pub(super) fn at(&self, index: usize) -> Option<Arc<MadeBean>> {
        self.entries.get(index).map(|entry| Arc::clone(&entry.bean))
    }

    /// The one bean of type `T`.
    ///
    /// # Errors
    /// [`BeanError::NoSuchType`], [`BeanError::Ambiguous`].
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Bean<T>, BeanError> {
        self.for_argument(None)
    }

    /// The bean of type `T` for an argument of this name: the only one, or that of the same name.
    ///
    /// # Errors
    /// [`BeanError::NoSuchType`], [`BeanError::Ambiguous`].
    pub fn for_argument<T: ?Sized + Send + Sync + 'static>(
        &self,
        argument: Option<&str>,
    ) -> Result<Bean<T>, BeanError> {
        self.chosen(argument, type_name::<T>(), MadeBean::form::<T>)
    }

    /// The bean of this name.
    ///
    /// # Errors
    /// [`BeanError::NoSuchName`], [`BeanError::OtherType`].
    pub fn named<T: ?Sized + Send + Sync + 'static>(&self, name: &str) -> Result<Bean<T>, BeanError> {
        let entry = self.existing(name)?;
        entry.bean.form::<T>().ok_or_else(|| entry.is_no(type_name::<T>()))
    }

    /// A copy of the bean of this name, or, where `T` is a `Bean<_>`, the bean itself.
    ///
    /// # Errors
    /// As [`Beans::named`].
    pub fn copy<T: Clone + 'static>(&self, name: &str) -> Result<T, BeanError> {
        let entry = self.existing(name)?;
        entry.bean.copy::<T>().ok_or_else(|| entry.is_no(shown::<T>()))
    }

    /// A copy of the one bean of type `T`, or, where `T` is a `Bean<_>`, the bean itself.
    ///
    /// # Errors
    /// As [`Beans::get`].
    pub fn copy_of<T: Clone + 'static>(&self) -> Result<T, BeanError> {
        self.chosen(None, shown::<T>(), MadeBean::copy::<T>)
    }

    /// Whether the beans that an argument asks for are there.
    ///
    /// # Errors
    /// As [`Beans::named`] where it asks by name, and else as [`Beans::for_argument`].
    pub fn check(&self, argument: &BeanArgument) -> Result<(), BeanError> {
        for request in argument.requests {
            let type_name = (request.type_name)();
            let meets = |bean: &MadeBean| bean.meets().any(|met| met == *request).then_some(());
            match argument.bean {
                Some(name) => {
                    let entry = self.existing(name)?;
                    meets(&entry.bean).ok_or_else(|| entry.is_no(type_name))?;
                }
                None => self.chosen(argument.name, type_name, meets)?,
            }
        }
        Ok(())
    }

    /// Every bean as `name: type`, in the order in which they were made.
    #[must_use]
    pub fn descriptions(&self) -> Vec<String> {
        self.entries.iter().map(|entry| format!("`{}: {}`", entry.name, entry.bean.type_name())).collect()
    }

    /// Closes those whose type says how, in the reverse order of their making, each when the one before has ended. What
    /// fails, panics or takes too long is logged and keeps no other from being closed.
    pub(crate) async fn close(&self, time: Duration) {
        let end = Instant::now() + time;
        for Entry { name, bean } in self.entries.iter().rev() {
            let Some(closer) = bean.closer() else { continue };
            let left = end.saturating_duration_since(Instant::now()).max(GRACE);
            let type_name = bean.type_name();
            match timeout(left, closer.close()).await {
                Ok(Ok(Ok(()))) => tracing::debug!(bean = %name, type_name, "closed a bean"),
                Ok(Ok(Err(error))) => {
                    tracing::error!(bean = %name, type_name, error, "a bean was not closed in order");
                }
                Ok(Err(panic)) => {
                    tracing::error!(bean = %name, type_name, panic, "a bean panicked while it was closed");
                }
                Err(_) => {
                    tracing::error!(bean = %name, type_name, ?left, "a bean was not closed in time");
                }
            }
        }
    }

    fn chosen<R>(
        &self,
        argument: Option<&str>,
        type_name: &'static str,
        form: impl Fn(&MadeBean) -> Option<R>,
    ) -> Result<R, BeanError> {
        let fitting = self.entries.iter().filter_map(|entry| Some((&*entry.name, form(&entry.bean)?)));
        match choose(argument, fitting) {
            Choice::One(bean) => Ok(bean),
            Choice::None => Err(BeanError::NoSuchType { type_name, known: self.descriptions() }),
            Choice::Several(names) => Err(BeanError::Ambiguous { type_name, names }),
        }
    }

    fn existing(&self, name: &str) -> Result<&Entry, BeanError> {
        let found = self.entries.iter().find(|entry| &*entry.name == name);
        found.ok_or_else(|| BeanError::NoSuchName {
            name: name.to_owned(),
            nearest: crate::nearest::nearest(name, self.entries.iter().map(|entry| &*entry.name)),
            known: self.descriptions(),
        })
    }
}

impl Entry {
    fn is_no(&self, expected: &'static str) -> BeanError {
        BeanError::OtherType { name: self.name.to_string(), expected, found: self.bean.type_name() }
    }
}

/// The name of the type whose bean is asked for, be it as a copy or as a `Bean<_>`.
fn shown<T>() -> &'static str {
    let whole = type_name::<T>();
    let of_bean =
        whole.strip_prefix("corriere_container::beans::Bean<").and_then(|rest| rest.strip_suffix('>'));
    of_bean.unwrap_or(whole)
}

impl Drop for Beans {
    fn drop(&mut self) {
        while let Some(Entry { name, bean }) = self.entries.pop() {
            let type_name = bean.type_name();
            // One bean's panic must not keep the others from being dropped.
            if let Err(panic) = caught(|| drop(bean)) {
                tracing::error!(bean = %name, type_name, panic, "a bean panicked while it was dropped");
            }
        }
    }
}

impl fmt::Debug for Beans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.iter().map(|entry| (&entry.name, entry.bean.type_name()));
        f.debug_map().entries(entries).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug)]
    struct Mailer {
        host: &'static str,
    }

    #[derive(Clone, Debug, PartialEq)]
    struct Template(u8);

    fn beans() -> Beans {
        let mut beans = Beans::new();
        beans.add("mailer", Bean::new(Mailer { host: "smtp" })).unwrap();
        beans.add("orders", Bean::new(Template(1))).unwrap();
        beans.add("emails", Bean::new(Template(2))).unwrap();
        beans
    }

    #[test]
    fn a_bean_is_had_by_type_by_name_and_as_a_copy() {
        let beans = beans();
        assert_eq!(beans.get::<Mailer>().unwrap().host, "smtp");
        assert_eq!(*beans.named::<Template>("emails").unwrap(), Template(2));
        assert_eq!(beans.copy::<Template>("orders").unwrap(), Template(1));
        assert_eq!(beans.copy::<Bean<Mailer>>("mailer").unwrap().host, "smtp");
    }

    #[test]
    fn what_cannot_be_had_is_named_with_what_can() {
        let beans = beans();
        let text =
            |error: BeanError| error.to_string().replace("corriere_container::beans::registry::tests::", "");
        assert_eq!(
            text(beans.get::<u64>().unwrap_err()),
            "there is no bean of type `u64`; there are `mailer: Mailer`, `orders: Template`, `emails: Template`"
        );
        assert_eq!(
            text(beans.get::<Template>().unwrap_err()),
            "2 beans have the type `Template`: `orders`, `emails`; ask for one by name"
        );
        assert_eq!(
            text(beans.named::<Mailer>("maler").unwrap_err()),
            "there is no bean named `maler`, did you mean `mailer`?; there are `mailer: Mailer`, `orders: Template`, `emails: Template`"
        );
        assert_eq!(
            text(beans.copy::<String>("mailer").unwrap_err()),
            "the bean `mailer` is a `Mailer`, not a `alloc::string::String`"
        );
    }

    #[test]
    fn a_second_bean_of_a_name_is_refused() {
        let error = beans().add("mailer", Bean::new(1_u8)).unwrap_err();
        assert!(matches!(error, BeanError::NameInUse { name, .. } if name == "mailer"));
    }

    #[test]
    fn beans_are_dropped_in_the_reverse_order() {
        struct Noted(u8, Arc<Mutex<Vec<u8>>>);
        impl Drop for Noted {
            fn drop(&mut self) {
                self.1.lock().unwrap().push(self.0);
            }
        }
        let dropped = Arc::new(Mutex::new(Vec::new()));
        let mut beans = Beans::new();
        for number in 1..=3 {
            beans.add(number.to_string(), Bean::new(Noted(number, dropped.clone()))).unwrap();
        }
        drop(beans);
        assert_eq!(*dropped.lock().unwrap(), [3, 2, 1]);
    }
}
