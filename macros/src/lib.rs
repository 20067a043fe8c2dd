//! Corriere's attributes.
//!
//! What they emit names everything through `::corriere::__private`, so a crate needs no other dependency than `corriere`.

mod listener;

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
/// | `ack` | `"auto"` (default), `"client"`, `"transacted"` or `"manual"` |
/// | `concurrency` | bounds of the number of workers, `"2-8"`; a single number is the upper bound |
/// | `send_to` | where a reply goes when the request has no `JMSReplyTo` |
/// | `id` | the listener's name in the configuration and the logs; the function's name by default |
/// | `container` | its `[listener_containers.NAME]`; `"default"` by default |
///
/// An `async fn` runs on the container's own tasks, a plain `fn` on a thread of its own, where it may block. Every argument
/// is made by `FromDelivery`: the payload, which is any `Deserialize`, at most once; `Header<K>`, `Headers`, `Properties`,
/// `Delivery`, `Session`, `Bean<T>`, `Message`; or a type of your own. The function may return nothing, a reply (any
/// `Serialize`, an `Option` of it, or `Reply<T>`), or a `Result` of these, whose error decides what becomes of the message.
///
/// The function stays as it is and can be called in a unit test. Beside it stands a type of the same name with the constant
/// `DEF`, which names the listener: `on_order::DEF`. A function with several of these attributes is several listeners; each
/// attribute then needs an `id`, and the type has a constant for each of them, in capitals, and all of them in `DEFS`:
///
/// ```ignore
/// // Ignored for the same reason.
/// #[jms_listener(id = "local_orders", queue = "orders")]
/// #[jms_listener(id = "export_orders", queue = "orders.export")]
/// async fn on_order(order: Order) {} // on_order::LOCAL_ORDERS, on_order::EXPORT_ORDERS, on_order::DEFS
/// ```
#[proc_macro_attribute]
pub fn jms_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    listener::expand(arguments.into(), &item.into()).into()
}
