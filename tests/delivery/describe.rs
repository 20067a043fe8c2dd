//! What happened, in lines that can be read.

use corriere_broker::machine::{Batch, Effects, Input};
use corriere_broker::store::StoreOperation;
use corriere_core::provider::Command;
use corriere_tests::model::id_of;

/// What the machine did, confirmations apart that say nothing new.
pub(crate) fn effects(effects: &Effects, log: &mut Vec<String>) {
    for Batch { id, operations, .. } in &effects.store {
        let operations: Vec<_> = operations.iter().map(of_operation).collect();
        log.push(format!("    store {}: {}", id.0, operations.join(", ")));
    }
    for (connection, event) in &effects.changes {
        log.push(format!("    c{} is told {event:?}", connection.0));
    }
    for (connection, batch) in &effects.deliveries {
        for dispatch in batch {
            log.push(format!(
                "    c{} s{} gets {} as #{} epoch {} count {}",
                connection.0,
                dispatch.subscription,
                id_of(&dispatch.message),
                dispatch.number,
                dispatch.epoch,
                dispatch.delivery_count
            ));
        }
    }
    for (connection, subscription) in &effects.browse_ends {
        log.push(format!("    c{} s{subscription} is told that it has been shown all", connection.0));
    }
    for (ticket, outcome) in &effects.managed {
        log.push(format!("    t{}: {outcome:?}", ticket.0));
    }
    for (ticket, outcome) in effects.confirmations.iter().filter(|(_, outcome)| outcome.is_err()) {
        log.push(format!("    t{}: {outcome:?}", ticket.0));
    }
}

/// An input in one line.
pub(crate) fn input(input: &Input) -> String {
    match input {
        Input::Command { connection, ticket, command } => {
            let command = match command {
                Command::Send(send) => {
                    let headers = send.message.headers();
                    format!(
                        "send {} to {:?} priority {} {:?} size {} expires {:?} in {:?}",
                        id_of(&send.message),
                        headers.destination,
                        headers.priority.level(),
                        headers.delivery_mode,
                        send.message.size(),
                        headers.expiration.map(|expiration| expiration.0 % 1_000_000),
                        send.transaction.as_ref().map(ToString::to_string)
                    )
                }
                Command::Acknowledge(ack) => format!(
                    "ack s{} {}..={} {:?} in {:?}",
                    ack.subscription,
                    ack.first,
                    ack.last,
                    ack.kind,
                    ack.transaction.as_ref().map(ToString::to_string)
                ),
                Command::OpenSubscription(subscribe) => format!(
                    "subscribe s{} in session {} to {:?} {:?} {:?} no_local {} {:?}",
                    subscribe.subscription,
                    subscribe.session,
                    subscribe.destination,
                    subscribe.durable_name,
                    subscribe.credit,
                    subscribe.no_local,
                    subscribe.redelivery
                ),
                other => format!("{other:?}"),
            };
            format!("c{} t{} {command}", connection.0, ticket.0)
        }
        Input::Manage { ticket, order } => {
            let messages: Vec<_> =
                order.messages.iter().map(|(_, message)| id_of(message).to_string()).collect();
            format!("t{} {:?} of {}: {messages:?}", ticket.0, order.action, order.queue)
        }
        other => format!("{other:?}"),
    }
}

fn of_operation(operation: &StoreOperation) -> String {
    match operation {
        StoreOperation::Append { queue, message, transaction, .. } => {
            let within = if transaction.is_some() { " (transacted)" } else { "" };
            format!("append {} to {queue}{within}", id_of(message))
        }
        StoreOperation::Publish { topic, subscriptions, message, transaction, .. } => {
            let within = if transaction.is_some() { " (transacted)" } else { "" };
            let names: Vec<_> = subscriptions.iter().map(ToString::to_string).collect();
            format!("publish {} to {topic} for {names:?}{within}", id_of(message))
        }
        other => format!("{other:?}"),
    }
}
