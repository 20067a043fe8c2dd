//! Codes of operations (OpenWire, section 5).

use crate::codec::error::{DecodeError, DecodeFault, EncodeError};
use crate::codec::loose::{Field, Reader, Writer};

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident, $of:literal { $($(#[$code_meta:meta])* $code:ident = $number:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$code_meta])* $code = $number,)*
        }

        impl Field for $name {
            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match reader.i8()? {
                    $($number => Ok(Self::$code),)*
                    code => Err(reader.fault(1, DecodeFault::Code { code, of: $of })),
                }
            }

            fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
                writer.i8(*self as i8);
                Ok(())
            }

            #[cfg(test)]
            fn sample(source: &mut crate::codec::sample::Source) -> Self {
                let known = [$(Self::$code,)*];
                known[source.below(known.len())]
            }
        }
    )*};
}

codes! {
    /// What became of messages (`MessageAck.ackType`).
    AckType, "kind of acknowledgement" {
        /// Arrived at the client, not settled; moves the window.
        Delivered = 0,
        /// Never to be delivered again.
        Poison = 1,
        /// Settled.
        #[default]
        Standard = 2,
        /// Kept by the client, which delivers it again.
        Redelivered = 3,
        /// Settled, this one only.
        Individual = 4,
        /// The selector did not match.
        Unmatched = 5,
        /// Expired at the client.
        Expired = 6,
    }

    /// What happens to a transaction (`TransactionInfo.type`).
    TransactionOperation, "operation on a transaction" {
        /// It begins.
        #[default]
        Begin = 0,
        /// First phase of a distributed commit.
        Prepare = 1,
        /// Commit without a first phase.
        CommitOnePhase = 2,
        /// Second phase of a distributed commit.
        CommitTwoPhase = 3,
        /// Roll back.
        Rollback = 4,
        /// List those that are prepared.
        Recover = 5,
        /// Forget one that ended heuristically.
        Forget = 6,
        /// The connection is done with it.
        End = 7,
    }

    /// What happens to a destination (`DestinationInfo.operationType`).
    DestinationOperation, "operation on a destination" {
        /// It is made.
        #[default]
        Add = 0,
        /// It is removed.
        Remove = 1,
    }
}
