//! Between the messages of the wire and those of `corriere-core` (OpenWire, sections 5.1, 6, 7 and 8).
//!
//! | on the wire | in core |
//! | --- | --- |
//! | `destination`, `reply_to` | the headers; a name that core refuses is an error that says why |
//! | `message_id` | the header |
//! | `persistent`, `priority`, `timestamp`, `expiration` | the headers |
//! | `correlation_id`, `message_type` | the headers |
//! | `group_id`, `group_sequence` | the properties `JMSXGroupID`, `JMSXGroupSeq` |
//! | `user_id`, `jmsx_group_first_for_consumer` | the properties `JMSXUserID`, `JMSXGroupFirstForConsumer` |
//! | `marshalled_properties` | the properties, named as they came |
//! | `content` | the body, inflated where it is `compressed`; a Java object stays the bytes that it is |
//! | a map or a list in properties or a body | [`Value::Bytes`](corriere_core::Value::Bytes), see [`nested_value`] |
//! | `redelivery_counter` of a dispatch | the delivery count, which is one more |
//! | all others | nothing; [`Message::beyond_core`](crate::structures::Message::beyond_core) names what is set |
//!
//! Numbers are taken as Java takes them: a priority beyond 0 to 9 is the nearest of these, and an expiration that is not
//! after 1970 is none; a time stamp before 1970 is taken for 1970.
//! A text view that is no message id is passed over for the producer and its number, and named as what is left over.
//! What goes out is not compressed.
//!
//! ```
//! use corriere_core::{Body, Destination};
//! use corriere_openwire::conversion::ConversionLimits;
//! use corriere_openwire::structures::Message;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut order = corriere_core::Message::new(Body::text("three of A-17"));
//! order.headers_mut().destination = Some(Destination::queue("orders")?);
//!
//! let on_the_wire = Message::from_core(&order)?;
//! assert_eq!(on_the_wire.destination.as_ref().map(ToString::to_string).as_deref(), Some("queue://orders"));
//! assert_eq!(on_the_wire.to_core(ConversionLimits::default())?, order);
//! # Ok(())
//! # }
//! ```

mod body;
mod error;
mod identifiers;
mod incoming;
mod inflate;
mod outgoing;
mod value;

pub use error::ConversionError;
pub use value::nested_value;

use bytes::Bytes;

use crate::codec::format::DEFAULT_MAXIMUM_FRAME_SIZE;

/// How much a stranger's message may grow when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversionLimits {
    /// How many bytes of memory a body may take, and how many the properties: small values take more than on the wire,
    /// and a compressed body up to a thousand times as much.
    pub memory: usize,
}

impl Default for ConversionLimits {
    /// As much as a frame may have.
    fn default() -> Self {
        Self { memory: DEFAULT_MAXIMUM_FRAME_SIZE }
    }
}

const GROUP_ID: &str = "JMSXGroupID";
const GROUP_SEQUENCE: &str = "JMSXGroupSeq";
const USER_ID: &str = "JMSXUserID";
const GROUP_FIRST: &str = "JMSXGroupFirstForConsumer";

/// Bytes for a message to keep. A few of a frame would keep the whole buffer alive that it was read into.
fn kept(bytes: &Bytes) -> Bytes {
    const SHARED_FROM: usize = 16 * 1024;
    if bytes.len() < SHARED_FROM { Bytes::copy_from_slice(bytes) } else { bytes.clone() }
}

#[cfg(test)]
mod tests;
