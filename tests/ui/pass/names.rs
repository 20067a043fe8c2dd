//! Whatever a listener's function is called, in a crate that forbids lints which the emitted code could meet.
#![forbid(unsafe_code, unused_imports, unused_qualifications, dead_code, missing_docs)]
#![forbid(non_camel_case_types, non_snake_case, missing_debug_implementations)]
#![forbid(unreachable_pub, unused_variables, unused_mut, unused_must_use, let_underscore_drop)]

use corriere::prelude::*;

macro_rules! listeners {
    ($($name:ident)*) => {$(
        #[jms_listener(queue = "a")]
        async fn $name(text: String, _delivery: Delivery) -> Result<Option<String>, ListenerError> {
            Ok(Some(text))
        }
    )*};
}

listeners! { run invoke def main_ value error made converter invocation argument_0 r#type r#async registered listener }

mod blocking {
    use super::*;

    #[jms_listener(queue = "a")]
    fn run(text: String) -> String {
        text
    }

    #[jms_listener(queue = "a")]
    fn converter(text: String) -> String {
        text
    }
}

fn main() {
    assert_eq!(run::DEF.id, "run");
    assert_eq!(r#type::DEF.id, "type");
    assert_eq!(corriere::listener::ListenerDef::all().len(), 16);
}
