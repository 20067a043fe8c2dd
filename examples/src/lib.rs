//! What more than one example needs: an outbox of files in place of a mail server, and the signals that end a program.

mod outbox;
mod signals;

pub use outbox::{Outbox, OutboxError};
pub use signals::end_signal;
