//! Beans that ask for each other: what is told before any constructor is called.

use corriere::Bean;
use corriere::prelude::*;

use crate::{application, refused};

/// Two that need each other.
#[derive(Debug)]
struct FirstHalf;

#[derive(Debug)]
struct SecondHalf;

#[corriere::bean(type = "first_half")]
impl FirstHalf {
    fn new(_other: Bean<SecondHalf>) -> Self {
        panic!("it is never called")
    }
}

#[corriere::bean(type = "second_half")]
impl SecondHalf {
    fn new(_first_half: Bean<FirstHalf>) -> Self {
        panic!("it is never called")
    }
}

/// What a store is to its archive.
#[derive(Debug)]
struct Archive;

type Store = Bean<std::sync::Mutex<Vec<u8>>>;

#[corriere::bean(type = "archive")]
impl Archive {
    fn new(_store: Store, #[bean("tape")] _copy: Store) -> Self {
        Self
    }
}

#[jms_listener(queue = "archive")]
async fn on_archive(_text: String, _archive: Bean<Archive>, #[bean("keeper")] _second: Bean<Archive>) {}

const BROKER: &str = "[broker]\nname = \"bean-names\"\n";

#[tokio::test]
async fn all_that_is_wrong_between_beans_is_told_at_once_and_with_their_places() {
    let text = format!(
        "{BROKER}[templates.mail]\n[beans.one]\ntype = \"first_half\"\n[beans.two]\ntype = \"second_half\"\n\
         [beans.keeper]\ntype = \"archive\"\n[beans.other]\ntype = \"archive\"\n[beans.tape]\ntype = \"counter\"\n"
    );
    let told = refused(application(&text).named_bean("mail", 1_u8).listeners([on_archive::DEF])).await;
    assert_eq!(
        told,
        [
            "2 beans are named `mail`: the program's `mail` and `templates.mail` (config.toml:3:1); give one of them \
             another name",
            "`beans.keeper` (config.toml:8:1): its argument `copy` asks for the bean `tape`, which is a \
             `application::beans::Counter`, not a `std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>`",
            "`beans.other` (config.toml:10:1): its argument `copy` asks for the bean `tape`, which is a \
             `application::beans::Counter`, not a `std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>`",
            "listener `on_archive`: its argument `archive` could be any of 2 beans of the type \
             `application::bean_names::Archive`: `keeper`, `other`; name the argument after one of them, or put \
             `#[bean(\"keeper\")]` on it",
            "listener `on_archive` needs `beans.keeper` (config.toml:8:1) for its argument `second`, which needs a bean \
             of the type `std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>` for its argument `store`, and there is none; \
             no bean type makes one, so hand it over with `.bean(value)`, or put `#[corriere::bean(type = \"…\")]` on its \
             constructor",
            "`beans.other` (config.toml:10:1) needs a bean of the type \
             `std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>` for its argument `store`, and there is none; no bean type \
             makes one, so hand it over with `.bean(value)`, or put `#[corriere::bean(type = \"…\")]` on its constructor",
            "`beans.one` (config.toml:4:1) needs `beans.two` (config.toml:6:1) for its argument `other`, which needs \
             `beans.one` (config.toml:4:1) for its argument `first_half`; none of them can be made before the others",
        ]
    );
}

#[tokio::test]
async fn a_check_tells_the_same_as_a_start() {
    let text = "[beans.one]\ntype = \"first_half\"\n[beans.two]\ntype = \"second_half\"\n";
    let checked = application(text).listeners([]).check().unwrap_err();
    assert_eq!(refused(application(text).listeners([])).await, [checked.to_string().lines().next().unwrap()]);
}

#[tokio::test]
async fn two_beans_of_one_name_stop_the_start() {
    let name = |text: &str| application(&format!("{BROKER}{text}")).listeners([]);
    let cases = [
        (
            name("[connection_factories.mail]\nurl = \"vm://bean-names\"\n[templates.mail]\n"),
            "2 beans are named `mail`: `connection_factories.mail.url` (config.toml:4:7) and `templates.mail` \
             (config.toml:5:1); give one of them another name",
        ),
        (
            name("[beans.mail]\ntype = \"counter\"\n[message_converters.mail]\ntype = \"text\"\n"),
            "2 beans are named `mail`: `message_converters.mail` (config.toml:5:1) and `beans.mail` (config.toml:3:1); \
             give one of them another name",
        ),
        (
            name("").named_bean("one", 1_u8).named_bean("one", 2_u16),
            "2 beans are named `one`: the program's `one` and the program's `one`; give one of them another name",
        ),
        (
            name("[beans.archive]\ntype = \"counter\"\n").bean(Archive),
            "2 beans are named `archive`: the program's `archive`, which is named after its type and `beans.archive` \
             (config.toml:3:1); give one of them another name, that of the program with `.named_bean(\"…\", value)`",
        ),
    ];
    for (builder, expected) in cases {
        assert_eq!(refused(builder).await, [expected]);
    }
}

#[tokio::test]
async fn the_right_names_make_an_application() {
    let app = application("[beans.keeper]\ntype = \"archive\"\n")
        .named_bean("store", std::sync::Mutex::new(vec![1_u8]))
        .named_bean("tape", std::sync::Mutex::new(vec![2_u8]))
        .listeners([])
        .start()
        .await
        .unwrap();
    assert!(app.bean_of::<Bean<Archive>>().is_ok());
    let error = app.bean_of::<Store>().unwrap_err().to_string();
    assert_eq!(
        error,
        "2 beans have the type `std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>`: `store`, `tape`; ask for one by name"
    );
    let error = app.bean_of::<u8>().unwrap_err().to_string();
    assert!(error.starts_with("there is no bean of type `u8`; there are `store: "), "{error}");
}

#[derive(Debug, Default)]
struct Seen(std::sync::Mutex<Vec<(String, String)>>);

#[jms_listener(queue = "names")]
async fn on_name(
    _text: String,
    left: Bean<String>,
    #[bean("left")] right: Bean<String>,
    own: Own,
    seen: Bean<Seen>,
) {
    assert_eq!(own.0, "own");
    seen.0.lock().unwrap().push((String::clone(&left), String::clone(&right)));
}

/// A user's own argument follows the same rule.
struct Own(String);

impl FromDelivery for Own {
    const BEANS: &'static [corriere::beans::BeanRequest] = &[corriere::beans::BeanRequest::of::<String>()];

    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(Self(String::clone(&*invocation.bean::<String>()?)))
    }
}

#[corriere::test]
async fn the_arguments_of_a_listener_are_found_by_their_names_too(app: TestApp) {
    let app = app
        .named_bean("left", "left".to_owned())
        .named_bean("right", "right".to_owned())
        .named_bean("own", "own".to_owned())
        .bean(Seen::default())
        .listeners([on_name::DEF])
        .start()
        .await;
    app.send("names", "x").await;
    app.settled(on_name::DEF).await.acked().times(1);
    let seen: Bean<Seen> = app.bean_of();
    assert_eq!(*seen.0.lock().unwrap(), [("left".to_owned(), "left".to_owned())]);
}
