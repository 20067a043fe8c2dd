//! Transactions (OpenWire, sections 5 and 8).

use std::fmt;

use bytes::Bytes;

use super::{ConnectionId, TransactionOperation};
use crate::codec::error::{DecodeError, EncodeError};
use crate::codec::loose::{Described, Nested, Reader, Writer, describe};
use crate::codec::structure::Structure;

describe! {
    /// A client begins or ends a transaction.
    command 7 TransactionInfo {
        /// Whose.
        connection_id: Option<ConnectionId>,
        /// Which one; null when those that are prepared are asked for.
        transaction_id: Option<TransactionId>,
        /// What happens to it.
        operation: TransactionOperation,
    }

    /// A transaction of one connection.
    #[derive(Hash)]
    structure 111 LocalTransactionId {
        /// Counted by the connection.
        value: i64,
        /// Whose.
        connection_id: ConnectionId,
    }

    /// A branch of a distributed transaction (X/Open XA).
    #[derive(Hash)]
    structure 112 XaTransactionId {
        /// Which scheme the two other parts follow.
        format_id: i32,
        /// The global transaction.
        global_transaction_id: Option<Bytes>,
        /// The branch.
        branch_qualifier: Option<Bytes>,
    }
}

/// A transaction: of one connection, or a branch of a distributed one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TransactionId {
    /// Type 111.
    Local(LocalTransactionId),
    /// Type 112.
    Xa(XaTransactionId),
}

impl From<TransactionId> for Structure {
    fn from(id: TransactionId) -> Self {
        match id {
            TransactionId::Local(id) => id.into(),
            TransactionId::Xa(id) => id.into(),
        }
    }
}

impl Nested for TransactionId {
    const NAME: &'static str = "TransactionId";

    fn accepts(data_type: u8) -> bool {
        matches!(data_type, LocalTransactionId::TYPE | XaTransactionId::TYPE)
    }

    fn read_as(data_type: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if data_type == LocalTransactionId::TYPE {
            LocalTransactionId::read_as(data_type, reader).map(Self::Local)
        } else {
            XaTransactionId::read_as(data_type, reader).map(Self::Xa)
        }
    }

    fn data_type(&self) -> u8 {
        match self {
            Self::Local(id) => id.data_type(),
            Self::Xa(id) => id.data_type(),
        }
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Local(id) => id.write_fields(writer),
            Self::Xa(id) => id.write_fields(writer),
        }
    }

    #[cfg(test)]
    fn sample_any(source: &mut crate::codec::sample::Source) -> Self {
        if source.flag() {
            Self::Local(Nested::sample_any(source))
        } else {
            Self::Xa(Nested::sample_any(source))
        }
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(id) => write!(f, "TX:{}:{}", id.connection_id, id.value),
            Self::Xa(id) => {
                write!(f, "XID:[{},globalId=", id.format_id)?;
                hexadecimal(f, id.global_transaction_id.as_deref())?;
                f.write_str(",branchId=")?;
                hexadecimal(f, id.branch_qualifier.as_deref())?;
                f.write_str("]")
            }
        }
    }
}

fn hexadecimal(f: &mut fmt::Formatter<'_>, bytes: Option<&[u8]>) -> fmt::Result {
    bytes.unwrap_or_default().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_tells_transactions_apart() {
        let connection_id = ConnectionId { value: "ID:host-1:1".into() };
        let local = TransactionId::Local(LocalTransactionId { value: 7, connection_id });
        assert_eq!(local.to_string(), "TX:ID:host-1:1:7");
        let distributed = TransactionId::Xa(XaTransactionId {
            format_id: 86,
            global_transaction_id: Some(Bytes::from_static(&[1, 0xff])),
            branch_qualifier: None,
        });
        assert_eq!(distributed.to_string(), "XID:[86,globalId=01ff,branchId=]");
    }
}
