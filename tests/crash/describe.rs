//! What happened, in lines that can be read.

use corriere_broker::machine::ConnectionKey;
use corriere_broker::store::StoreOperation;
use corriere_core::provider::Dispatch;

pub(crate) fn batch(number: u64, operations: &[StoreOperation]) -> String {
    let operations: Vec<_> = operations.iter().map(operation).collect();
    format!("    batch {number}: {}", operations.join(", "))
}

fn operation(operation: &StoreOperation) -> String {
    match operation {
        StoreOperation::Append { stored, queue, arrival, message, transaction } => format!(
            "append {} = {} ({} bytes) to {queue} {arrival:?} in {transaction:?}",
            stored.0,
            message.headers().message_id.as_ref().map_or_else(String::new, ToString::to_string),
            message.size()
        ),
        StoreOperation::Remove { stored, reason, transaction } => {
            format!("remove {} {reason:?} in {transaction:?}", stored.0)
        }
        StoreOperation::DeliveryState { stored, state } => format!("state of {}: {state:?}", stored.0),
        other => format!("{other:?}"),
    }
}

pub(crate) fn delivery(connection: ConnectionKey, dispatch: &Dispatch) -> String {
    format!(
        "    c{} s{} gets {} as #{} epoch {} count {}",
        connection.0,
        dispatch.subscription,
        dispatch.message.headers().message_id.as_ref().map_or_else(String::new, ToString::to_string),
        dispatch.number,
        dispatch.epoch,
        dispatch.delivery_count
    )
}
