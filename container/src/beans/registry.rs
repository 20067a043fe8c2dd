//! The beans of an application.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::Arc;

use corriere_core::panic::caught;

use super::{Bean, BeanError, BeanRequest};

/// The name of a bean.
pub type BeanName = Arc<str>;

/// The beans of an application, in the order in which they were made.
///
/// They are dropped in the reverse order, so that a bean outlives those that were made with it.
#[derive(Default)]
pub struct Beans {
    entries: Vec<Entry>,
}

struct Entry {
    name: BeanName,
    type_id: TypeId,
    type_name: &'static str,
    /// A [`Bean`] of that type.
    bean: Box<dyn Any + Send + Sync>,
    /// Borrows the value within `bean` as `dyn Any`, which needs the type that only `add` knew.
    value: fn(&(dyn Any + Send + Sync)) -> Option<&dyn Any>,
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
        if let Some(taken) = self.entry(&name) {
            return Err(BeanError::NameInUse { name: name.to_string(), type_name: taken.type_name });
        }
        self.entries.push(Entry {
            name,
            type_id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
            bean: Box::new(bean),
            value: |bean| bean.downcast_ref::<Bean<T>>().map(|bean| &**bean as &dyn Any),
        });
        Ok(())
    }

    /// The one bean of type `T`.
    ///
    /// # Errors
    /// [`BeanError::NoSuchType`], [`BeanError::Ambiguous`].
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<Bean<T>, BeanError> {
        let entry = self.only(BeanRequest::of::<T>())?;
        entry.shared::<T>().ok_or_else(|| self.no_such_type(type_name::<T>()))
    }

    /// The bean of this name.
    ///
    /// # Errors
    /// [`BeanError::NoSuchName`], [`BeanError::OtherType`].
    pub fn named<T: Send + Sync + 'static>(&self, name: &str) -> Result<Bean<T>, BeanError> {
        let entry = self.existing(name)?;
        entry.shared::<T>().ok_or_else(|| entry.is_no::<T>())
    }

    /// A copy of the bean of this name, or, where `T` is a `Bean<_>`, the bean itself.
    ///
    /// # Errors
    /// As [`Beans::named`].
    pub fn copy<T: Clone + 'static>(&self, name: &str) -> Result<T, BeanError> {
        let entry = self.existing(name)?;
        let shared = entry.bean.downcast_ref::<T>();
        let value = || (entry.value)(&*entry.bean).and_then(|value| value.downcast_ref::<T>());
        shared.or_else(value).cloned().ok_or_else(|| entry.is_no::<T>())
    }

    /// Whether a listener's request will be met.
    ///
    /// # Errors
    /// [`BeanError::NoSuchType`], [`BeanError::Ambiguous`].
    pub fn check(&self, request: BeanRequest) -> Result<(), BeanError> {
        self.only(request).map(|_| ())
    }

    /// Every bean as `name: type`, in the order in which they were made.
    #[must_use]
    pub fn descriptions(&self) -> Vec<String> {
        self.entries.iter().map(|entry| format!("`{}: {}`", entry.name, entry.type_name)).collect()
    }

    fn only(&self, request: BeanRequest) -> Result<&Entry, BeanError> {
        let type_id = (request.type_id)();
        let mut found = self.entries.iter().filter(|entry| entry.type_id == type_id);
        let first = found.next().ok_or_else(|| self.no_such_type((request.type_name)()))?;
        let others: Vec<_> = found.map(|entry| entry.name.to_string()).collect();
        if others.is_empty() {
            return Ok(first);
        }
        let names = std::iter::once(first.name.to_string()).chain(others).collect();
        Err(BeanError::Ambiguous { type_name: (request.type_name)(), names })
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| &*entry.name == name)
    }

    fn existing(&self, name: &str) -> Result<&Entry, BeanError> {
        self.entry(name).ok_or_else(|| BeanError::NoSuchName {
            name: name.to_owned(),
            nearest: crate::nearest::nearest(name, self.entries.iter().map(|entry| &*entry.name)),
            known: self.descriptions(),
        })
    }

    fn no_such_type(&self, type_name: &'static str) -> BeanError {
        BeanError::NoSuchType { type_name, known: self.descriptions() }
    }
}

impl Entry {
    fn shared<T: Send + Sync + 'static>(&self) -> Option<Bean<T>> {
        self.bean.downcast_ref::<Bean<T>>().cloned()
    }

    fn is_no<T>(&self) -> BeanError {
        BeanError::OtherType {
            name: self.name.to_string(),
            expected: type_name::<T>(),
            found: self.type_name,
        }
    }
}

impl Drop for Beans {
    fn drop(&mut self) {
        while let Some(entry) = self.entries.pop() {
            let (name, type_name) = (Arc::clone(&entry.name), entry.type_name);
            // One bean's panic must not keep the others from being dropped.
            if let Err(panic) = caught(|| drop(entry)) {
                tracing::error!(bean = %name, type_name, panic, "a bean panicked while it was dropped");
            }
        }
    }
}

impl fmt::Debug for Beans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries.iter().map(|entry| (&entry.name, entry.type_name))).finish()
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
