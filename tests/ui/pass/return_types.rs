//! What a listener returns is told by its type, whatever that is called.

use corriere::prelude::*;

type Done = Result<(), ListenerError>;
type Answer<T> = Result<T, std::io::Error>;
type Nothing = ();
type Mistaken = std::io::Result<String>;

#[allow(non_camel_case_types, reason = "another name for the same")]
type result<T> = Result<T, ListenerError>;

macro_rules! listener {
    ($name:ident, $returned:ty, $value:expr) => {
        #[jms_listener(queue = "a")]
        async fn $name() -> $returned {
            $value
        }
    };
}

listener!(done, Done, Ok(()));
listener!(answer, Answer<String>, Ok(String::new()));
listener!(answer_of_nothing, Answer<()>, Ok(()));
listener!(nothing, Nothing, ());
listener!(mistaken, Mistaken, Ok(String::new()));
listener!(lower_case, result<Option<u8>>, Ok(None));
listener!(io, std::io::Result<()>, Ok(()));
listener!(plain, String, String::new());
listener!(decorated, Option<Reply<u8>>, None);
listener!(decorated_result, Result<Option<Reply<u8>>, ListenerError>, Ok(None));

/// A type called `Result` that is none.
mod own {
    use corriere::prelude::*;

    #[derive(Serialize)]
    struct Result {
        score: u8,
    }

    #[jms_listener(queue = "a")]
    async fn scored() -> Result {
        Result { score: 1 }
    }

    pub(super) const REPLIES: bool = scored::DEF.replies;
}

fn main() {
    for (definition, replies) in [
        (done::DEF, false),
        (answer::DEF, true),
        (answer_of_nothing::DEF, false),
        (nothing::DEF, false),
        (mistaken::DEF, true),
        (lower_case::DEF, true),
        (io::DEF, false),
        (plain::DEF, true),
        (decorated::DEF, true),
        (decorated_result::DEF, true),
    ] {
        assert_eq!(definition.replies, replies, "{}", definition.id);
    }
    assert!(own::REPLIES);
}
