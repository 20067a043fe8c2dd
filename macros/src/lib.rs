//! Corriere's attributes.
//!
//! What they emit names everything through `::corriere::__private`, so a crate needs no other dependency than `corriere`.

mod argument;
mod bean;
mod listener;
mod main_attribute;
mod test_attribute;

use proc_macro::TokenStream;

/// Makes a function a listener: it is called with each message of a queue or a topic.
///
/// ```ignore
/// // Ignored because this crate stands below the face that the example imports.
/// use corriere::prelude::*;
///
/// #[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "emails")]
/// async fn on_order(order: Order, mailer: Bean<Mailer>) -> Result<Email, ListenerError> {
///     /* … */
/// }
/// ```
///
/// | key | value |
/// | --- | --- |
/// | `queue` or `topic` | the destination: a key of `[destinations]`, or a physical name; exactly one of the two |
/// | `ack` | when the message is settled: `"auto"` (default), when the function has returned `Ok`; `"client"`, the same, unless the function calls `Delivery::acknowledge` before; `"transacted"`, with all that was sent and received in the session's transaction; `"manual"`, only by `Delivery::acknowledge`, now or later. An acknowledgement settles its own message and no other |
/// | `concurrency` | bounds of the number of workers, `"2-8"`; a single number is the upper bound |
/// | `send_to` | where a reply goes when the request has no `JMSReplyTo` |
/// | `id` | the listener's name in the configuration and the logs; the function's name by default |
/// | `container` | its `[listener_containers.NAME]`; `"default"` by default |
///
/// An `async fn` runs on the container's own tasks, a plain `fn` on a thread of its own, where it may block. Every argument
/// is made by `FromDelivery`: the payload, which is any `Deserialize`, at most once; `Header<K>`, `Headers`, `Properties`,
/// `Delivery`, `Session`, `Bean<T>` (see [`bean`](macro@bean)), `Message`; or a type of your own. The function may return nothing, a reply (any
/// `Serialize`, an `Option` of it, or `Reply<T>`), or a `Result` of these, whose error decides what becomes of the message.
///
/// The function stays as it is and can be called in a unit test. Beside it stands a type of the same name with the constant
/// `DEF`, which names the listener: `on_order::DEF`; so no other type and no module there can have that name. A function with several of these attributes is several listeners; each
/// attribute then needs an `id`, and the type has a constant for each of them, in capitals, and all of them in `DEFS`:
///
/// ```ignore
/// // Ignored for the same reason.
/// #[jms_listener(id = "local_orders", queue = "orders")]
/// #[jms_listener(id = "export_orders", queue = "orders.export")]
/// async fn on_order(order: Order) {} // on_order::LOCAL_ORDERS, on_order::EXPORT_ORDERS, on_order::DEFS
/// ```
///
/// What is emitted meets no lint of the compiler, so a crate can forbid them, unsafe code among them; only
/// `non_upper_case_globals` can be denied but not forbidden, as `inventory` allows it for its own static. Of clippy's lints
/// one sees the function itself: `needless_pass_by_value` (pedantic) wants a blocking listener that only reads its arguments
/// to borrow them, which no listener can; such a function needs an `#[expect]` of its own.
#[proc_macro_attribute]
pub fn jms_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    listener::expand(arguments.into(), &item.into()).into()
}

/// Makes a type a bean that the configuration can name: `[beans.NAME] type = "…"`.
///
/// It stands on an `impl` block with the constructor `new`, or on a function that returns the bean; either may be async, and
/// the start of the application awaits it. It returns the bean or a `Result` of it, whose error stops the start.
///
/// A bean with a configuration, whose constructor may fail:
///
/// ```ignore
/// // Ignored because this crate stands below the face that the example imports.
/// use corriere::prelude::*;
///
/// #[derive(Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct MailerConfig { url: String }
///
/// struct Mailer { url: Url }
///
/// #[corriere::bean(type = "smtp_mailer")] // [beans.mailer] type = "smtp_mailer", url = "smtp://localhost"
/// impl Mailer {
///     fn new(config: MailerConfig) -> Result<Self, ParseError> {
///         Ok(Self { url: config.url.parse()? })
///     }
/// }
/// ```
///
/// One that is made by an async function, needs another bean, and is closed:
///
/// ```ignore
/// // Ignored for the same reason.
/// #[corriere::bean(type = "outbox", close = "close")] // [beans.outbox] type = "outbox", table = "mails"
/// async fn open_outbox(config: OutboxConfig, mailer: Bean<Mailer>) -> Result<Outbox, OutboxError> {
///     Outbox::open(&config.table, mailer).await
/// }
///
/// impl Outbox {
///     async fn close(&self) -> Result<(), OutboxError> { /* … */ }
/// }
/// ```
///
/// A running application gives a bean as it is asked for, by its name or by its type. A type that is `Clone` can be had as a
/// copy, any type as `Bean<T>`, which is the bean itself and derefs to it:
///
/// ```ignore
/// // Ignored for the same reason.
/// let orders: JmsTemplate = app.bean("order_template")?; // a copy
/// let mailer: Bean<Mailer> = app.bean("mailer")?;        // `Mailer` is not `Clone`
/// let outbox: Bean<Outbox> = app.bean_of()?;             // the only bean of its type
/// ```
///
/// | key | value |
/// | --- | --- |
/// | `type` | what `[beans.NAME] type = "…"` gives |
/// | `close` | a method that takes `&self`, async or not, and returns nothing or a `Result`. `Application::stop` calls it when the listeners have stopped, in the reverse order of making. One that is not async has a thread of its own and may block. What fails, panics or takes too long is logged, and not waited for |
///
/// Arguments, in any order:
///
/// - at most one configuration, any `DeserializeOwned`: the other keys of the bean's table. Keys that it does not know stop the
///   start where its type has `#[serde(deny_unknown_fields)]`. Without one, other keys are refused;
/// - other beans, `Bean<T>`, any number. One is found by its type; where several have the type, by the argument's name too;
///   with `#[bean("name")]` on the argument by that name. Templates, connection factories and message converters are beans as
///   well: `Bean<JmsTemplate>`, `Bean<ConnectionFactory>`, `Bean<dyn MessageConverter>`.
///
/// The same holds for `Bean<T>` arguments of listeners. Beans are made after those that they need, whatever their order in
/// the file, and once. All that cannot be told apart, is missing, or goes round in a circle is said before the first
/// constructor is called.
///
/// A bean whose type is a `MessageConverter` can be named by `message_converter = "NAME"`, and can also stand in
/// `[message_converters.NAME] type = "…"`. Where it needs no configuration, the type name alone will do.
///
/// A constructor that is not async runs where the start does, and should not block for long. As for a blocking listener,
/// clippy's `needless_pass_by_value` (pedantic) wants a function that only reads its arguments to borrow them.
#[proc_macro_attribute]
pub fn bean(arguments: TokenStream, item: TokenStream) -> TokenStream {
    bean::expand(arguments.into(), &item.into()).into()
}

/// Runs an `async fn main` in a runtime with several threads, its log on standard error.
///
/// The log's level is the variable `RUST_LOG`: `error`, `warn`, `info` (the default), `debug`, `trace` or `off`. A subscriber
/// that the program sets itself before it logs is left alone. A plain `fn main` with a runtime of its own works as well.
///
/// ```ignore
/// // Ignored because this crate stands below the face that the example imports.
/// #[corriere::main]
/// async fn main() -> Result<(), Error> {
///     Application::from_config("config.toml")?.start().await?.run_until_shutdown().await
/// }
/// ```
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    main_attribute::expand(arguments.into(), &item.into()).into()
}

/// Makes an async function with an argument `TestApp` a test with a broker and a clock of its own.
///
/// ```ignore
/// // Ignored because this crate stands below the face that the example imports.
/// #[corriere::test]
/// async fn an_order_is_confirmed(app: TestApp) {
///     let app = app.listeners([on_order::DEF]).bean(FakeStock::default()).start().await;
///     app.send("orders", &Order { id: 7 }).await;
///     app.settled(on_order::DEF).await.acked().times(1);
///     assert_eq!(app.take_one::<Email>("emails").await.subject, "Order 7");
/// }
/// ```
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    test_attribute::expand(arguments.into(), &item.into()).into()
}
