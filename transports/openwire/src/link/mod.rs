//! A connection as both of its sides, the acceptor and the client, read and write it: the exchange of wire formats, whole
//! commands in, a queue of commands out, silence and what is sent against it.

mod error;
mod frame_room;
mod handshake;
mod other_protocol;
mod outbox;
mod reading;
mod writing;

pub(crate) use error::LinkError;
pub(crate) use frame_room::{FrameRoom, SMALL};
pub(crate) use handshake::handshake;
pub(crate) use outbox::Outbox;
pub(crate) use reading::CommandReader;
pub(crate) use writing::{CommandWriter, write_out};

#[cfg(test)]
mod tests;
