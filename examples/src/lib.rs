//! What more than one example needs: an outbox of files in place of a mail server.

mod outbox;

pub use outbox::{Outbox, OutboxError};
