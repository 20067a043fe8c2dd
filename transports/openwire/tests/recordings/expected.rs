//! What the fields of the recorded structures hold, as `RecordOpenWire` sets them.

use std::ops::RangeBounds;
use std::sync::Arc;

use bytes::Bytes;
use corriere_core::DestinationKind;
use corriere_core::provider::Password;
use corriere_openwire::structures::*;
use corriere_openwire::{Structure, WireFormat};

/// Each recorded structure with its label, as far as the version has its fields.
pub(crate) fn all(format: WireFormat) -> Vec<(&'static str, Structure)> {
    let mut all = connections(format);
    all.extend(control(format));
    all.extend(deliveries(format));
    all.extend(responses(format));
    all.extend(brokers(format));
    all.extend(journal());
    all.extend(identifiers(format));
    all
}

const CONNECTION: &str = "ID:host-1-2-1:1";

pub(crate) fn connection_id() -> ConnectionId {
    ConnectionId { value: CONNECTION.into() }
}

pub(crate) fn session_id() -> SessionId {
    SessionId { connection_id: CONNECTION.into(), value: 3 }
}

pub(crate) fn consumer_id() -> ConsumerId {
    ConsumerId { connection_id: CONNECTION.into(), session_id: 3, value: 5 }
}

pub(crate) fn producer_id() -> ProducerId {
    ProducerId { connection_id: CONNECTION.into(), session_id: 3, value: 7 }
}

pub(crate) fn broker_id() -> BrokerId {
    BrokerId { value: "broker-1".into() }
}

pub(crate) fn broker_path() -> Option<Vec<BrokerId>> {
    Some(vec![broker_id(), BrokerId { value: "broker-2".into() }])
}

pub(crate) fn message_id() -> MessageId {
    MessageId {
        text_view: None,
        producer_id: Some(producer_id()),
        producer_sequence_id: 42,
        broker_sequence_id: 1001,
    }
}

pub(crate) fn queue() -> Destination {
    Destination::new(DestinationKind::Queue, "orders")
}

pub(crate) fn topic() -> Destination {
    Destination::new(DestinationKind::Topic, "prices")
}

pub(crate) fn temporary_queue() -> Destination {
    Destination::new(DestinationKind::TemporaryQueue, &format!("{CONNECTION}:9"))
}

fn temporary_topic() -> Destination {
    Destination::new(DestinationKind::TemporaryTopic, &format!("{CONNECTION}:10"))
}

fn local_id() -> LocalTransactionId {
    LocalTransactionId { value: 11, connection_id: connection_id() }
}

fn distributed_id() -> XaTransactionId {
    let bytes = |bytes: &'static [u8]| Some(Bytes::from_static(bytes));
    XaTransactionId { format_id: 12, global_transaction_id: bytes(&[1, 2]), branch_qualifier: bytes(&[3]) }
}

pub(crate) fn local() -> TransactionId {
    TransactionId::Local(local_id())
}

pub(crate) fn distributed() -> TransactionId {
    TransactionId::Xa(distributed_id())
}

pub(crate) fn text(text: &str) -> Option<Arc<str>> {
    Some(text.into())
}

/// The value in these versions, and nothing in others.
pub(crate) fn within<T: Default>(format: WireFormat, versions: impl RangeBounds<u8>, value: T) -> T {
    if versions.contains(&format.version.number()) { value } else { T::default() }
}

fn exception(format: WireFormat) -> Option<Throwable> {
    let element = |class, method, file: Option<&str>, line| StackTraceElement {
        class: text(class),
        method: text(method),
        file: file.map(Into::into),
        line,
    };
    let stack_trace = vec![
        element("Outer", "first", Some("Outer.java"), 10),
        element("Outer", "second", Some("Outer.java"), 20),
    ];
    let cause = Throwable {
        class: "java.lang.IllegalStateException".into(),
        message: None,
        stack_trace: vec![element("Inner", "method", None, -1)],
        cause: None,
    };
    let plain = Throwable::new(JavaException::InvalidSelector, "message");
    Some(if format.stack_traces {
        Throwable { stack_trace, cause: Some(Box::new(cause)), ..plain }
    } else {
        plain
    })
}

/// What every command has in the recordings, which a literal's `..` cannot say for different types.
macro_rules! command {
    ($name:ident { $($fields:tt)* }) => {
        Structure::from($name { command_id: 258, response_required: true, $($fields)* })
    };
}
pub(crate) use command;

fn consumer(format: WireFormat, additional_predicate: Option<Structure>) -> ConsumerInfo {
    ConsumerInfo {
        command_id: 0,
        response_required: false,
        consumer_id: consumer_id(),
        browser: true,
        destination: Some(topic()),
        prefetch_size: 32_766,
        maximum_pending_message_limit: -1,
        dispatch_async: true,
        selector: text("selector"),
        client_id: within(format, 10.., text("clientId")),
        subscription_name: text("subscriptionName"),
        no_local: true,
        exclusive: false,
        retroactive: true,
        priority: -3,
        broker_path: broker_path(),
        additional_predicate,
        network_subscription: true,
        optimized_acknowledge: false,
        no_range_acks: true,
        network_consumer_path: Some(vec![consumer_id()]),
    }
}

fn filter(format: WireFormat) -> NetworkBridgeFilter {
    NetworkBridgeFilter {
        network_broker_id: Some(broker_id()),
        network_ttl: within(format, ..10, 3),
        message_ttl: within(format, 10.., 3),
        consumer_ttl: within(format, 10.., 4),
    }
}

fn connections(format: WireFormat) -> Vec<(&'static str, Structure)> {
    // A map of one entry: the size of the cache.
    let properties = Bytes::from_static(b"\0\0\0\x01\0\x09CacheSize\x05\0\0\x04\0");
    let info = WireFormatInfo { magic: Magic, version: 12, marshalled_properties: Some(properties) };
    let consumer = ConsumerInfo {
        command_id: 258,
        response_required: true,
        ..consumer(format, Some(filter(format).into()))
    };
    let producer = |destination: Option<Destination>, broker_path, dispatch_async, window_size| {
        let producer_id = producer_id();
        command!(ProducerInfo { producer_id, destination, broker_path, dispatch_async, window_size })
    };
    let transaction = |transaction_id, operation| {
        let connection_id = Some(connection_id());
        command!(TransactionInfo { connection_id, transaction_id, operation })
    };
    vec![
        ("WireFormatInfo", info.into()),
        (
            "ConnectionInfo",
            command!(ConnectionInfo {
                connection_id: connection_id(),
                client_id: text("clientId"),
                password: Some(Password("password".into())),
                user_name: text("userName"),
                broker_path: broker_path(),
                broker_master_connector: false,
                manageable: true,
                client_master: false,
                fault_tolerant: true,
                failover_reconnect: true,
                client_ip: text("clientIp"),
            }),
        ),
        ("SessionInfo", command!(SessionInfo { session_id: session_id() })),
        ("ProducerInfo", producer(Some(queue()), broker_path(), true, 4_096)),
        ("ProducerInfo-anonymous", producer(None, None, false, 0)),
        ("ConsumerInfo", consumer.into()),
        (
            "DestinationInfo",
            command!(DestinationInfo {
                connection_id: Some(connection_id()),
                destination: Some(temporary_queue()),
                operation_type: DestinationOperation::Remove,
                timeout: 77,
                broker_path: broker_path(),
            }),
        ),
        (
            "RemoveSubscriptionInfo",
            command!(RemoveSubscriptionInfo {
                connection_id: Some(connection_id()),
                subscription_name: text("subscriptionName"),
                client_id: text("clientId"),
            }),
        ),
        (
            "RemoveInfo",
            command!(RemoveInfo { object_id: Some(consumer_id().into()), last_delivered_sequence_id: -2 }),
        ),
        ("TransactionInfo", transaction(Some(distributed()), TransactionOperation::Prepare)),
        ("TransactionInfo-recover", transaction(None, TransactionOperation::Recover)),
        (
            "SubscriptionInfo",
            Structure::from(SubscriptionInfo {
                client_id: text("clientId"),
                destination: Some(topic()),
                selector: text("selector"),
                subscription_name: text("subscriptionName"),
                subscribed_destination: Some(temporary_topic()),
                no_local: within(format, 11.., true),
            }),
        ),
    ]
}

fn control(format: WireFormat) -> Vec<(&'static str, Structure)> {
    let data = Some(Bytes::from_static(&[1, 2, 3]));
    vec![
        ("KeepAliveInfo", command!(KeepAliveInfo {})),
        ("ShutdownInfo", command!(ShutdownInfo {})),
        ("FlushCommand", command!(FlushCommand {})),
        ("ControlCommand", command!(ControlCommand { command: text("command") })),
        (
            "ConnectionError",
            command!(ConnectionError { exception: exception(format), connection_id: Some(connection_id()) }),
        ),
        (
            "ConsumerControl",
            command!(ConsumerControl {
                destination: Some(queue()),
                close: true,
                consumer_id: Some(consumer_id()),
                prefetch: 100,
                flush: false,
                start: true,
                stop: false,
            }),
        ),
        (
            "ConnectionControl",
            command!(ConnectionControl {
                close: true,
                exit: false,
                fault_tolerant: true,
                resume: false,
                suspend: true,
                connected_brokers: text("connectedBrokers"),
                reconnect_to: text("reconnectTo"),
                rebalance_connection: true,
                token: data.clone(),
            }),
        ),
        ("ProducerAck", command!(ProducerAck { producer_id: producer_id(), size: 4_096 })),
        ("ReplayCommand", command!(ReplayCommand { first_nak_number: 13, last_nak_number: 14 })),
        ("PartialCommand", PartialCommand { command_id: 258, data }.into()),
        ("LastPartialCommand", LastPartialCommand { command_id: 258, data: None }.into()),
    ]
}

fn deliveries(format: WireFormat) -> Vec<(&'static str, Structure)> {
    let dispatch = |message: Option<Message>, redelivery_counter| {
        let destination = Some(queue());
        let message = message.map(Box::new);
        command!(MessageDispatch { consumer_id: consumer_id(), destination, message, redelivery_counter })
    };
    let message = Message {
        kind: MessageKind::Text,
        message_id: Some(message_id()),
        content: Some(Bytes::from_static(b"\0\0\0\x04text")),
        ..Message::default()
    };
    let last = MessageId { producer_sequence_id: 43, broker_sequence_id: 0, ..message_id() };
    vec![
        (
            "MessagePull",
            command!(MessagePull {
                consumer_id: consumer_id(),
                destination: Some(queue()),
                timeout: -1,
                correlation_id: text("correlationId"),
                message_id: Some(message_id()),
            }),
        ),
        ("MessageDispatch", dispatch(Some(message), 2)),
        ("MessageDispatch-end", dispatch(None, 0)),
        (
            "MessageAck",
            command!(MessageAck {
                destination: Some(queue()),
                transaction_id: Some(local()),
                consumer_id: consumer_id(),
                ack_type: AckType::Poison,
                first_message_id: Some(message_id()),
                last_message_id: Some(last),
                message_count: 2,
                poison_cause: exception(format),
            }),
        ),
        (
            "MessageDispatchNotification",
            command!(MessageDispatchNotification {
                consumer_id: consumer_id(),
                destination: Some(queue()),
                delivery_sequence_id: 15,
                message_id: Some(message_id()),
            }),
        ),
    ]
}

fn responses(format: WireFormat) -> Vec<(&'static str, Structure)> {
    let correlation_id = 99;
    let data = Some(vec![distributed().into(), local().into()]);
    vec![
        ("Response", command!(Response { correlation_id })),
        ("ExceptionResponse", command!(ExceptionResponse { correlation_id, exception: exception(format) })),
        ("DataResponse", command!(DataResponse { correlation_id, data: Some(queue().into()) })),
        ("DataArrayResponse", command!(DataArrayResponse { correlation_id, data })),
        ("IntegerResponse", command!(IntegerResponse { correlation_id, result: 3 })),
    ]
}

fn brokers(format: WireFormat) -> Vec<(&'static str, Structure)> {
    let peer = BrokerInfo { broker_name: text("peer"), ..BrokerInfo::default() };
    let mut brokers = vec![
        (
            "BrokerInfo",
            command!(BrokerInfo {
                broker_id: Some(broker_id()),
                broker_url: text("brokerURL"),
                peer_broker_infos: Some(vec![peer]),
                broker_name: text("brokerName"),
                slave_broker: true,
                master_broker: false,
                fault_tolerant_configuration: true,
                duplex_connection: false,
                network_connection: true,
                connection_id: 16,
                broker_upload_url: text("brokerUploadUrl"),
                network_properties: text("networkProperties"),
            }),
        ),
        (
            "DiscoveryEvent",
            DiscoveryEvent { service_name: text("serviceName"), broker_name: text("brokerName") }.into(),
        ),
        ("NetworkBridgeFilter", filter(format).into()),
    ];
    if format.version.number() >= 12 {
        let subscriptions = command!(BrokerSubscriptionInfo {
            broker_id: Some(broker_id()),
            broker_name: text("brokerName"),
            subscription_infos: Some(vec![consumer(format, None)]),
        });
        brokers.push(("BrokerSubscriptionInfo", subscriptions));
    }
    brokers
}

fn journal() -> Vec<(&'static str, Structure)> {
    let ack = MessageAck {
        command_id: 258,
        consumer_id: consumer_id(),
        ack_type: AckType::Individual,
        message_count: 1,
        ..MessageAck::default()
    };
    let topic = JournalTopicAck {
        destination: Some(topic()),
        message_id: Some(message_id()),
        message_sequence_id: 17,
        subscription_name: text("subscriptionName"),
        client_id: text("clientId"),
        transaction_id: Some(local()),
    };
    let transaction =
        JournalTransaction { transaction_id: Some(distributed()), operation: 2, was_prepared: true };
    vec![
        ("JournalTopicAck", topic.into()),
        ("JournalQueueAck", JournalQueueAck { destination: Some(queue()), message_ack: Some(ack) }.into()),
        ("JournalTrace", JournalTrace { message: text("message") }.into()),
        ("JournalTransaction", transaction.into()),
    ]
}

fn identifiers(format: WireFormat) -> Vec<(&'static str, Structure)> {
    let foreign = MessageId { text_view: within(format, 10.., text("textView")), ..message_id() };
    vec![
        ("ConnectionId", connection_id().into()),
        ("SessionId", session_id().into()),
        ("ConsumerId", consumer_id().into()),
        ("ProducerId", producer_id().into()),
        ("BrokerId", broker_id().into()),
        ("MessageId", message_id().into()),
        ("MessageId-foreign", foreign.into()),
        ("LocalTransactionId", local_id().into()),
        ("XATransactionId", distributed_id().into()),
        ("Queue", queue().into()),
        ("Topic", topic().into()),
        ("TempQueue", temporary_queue().into()),
        ("TempTopic", temporary_topic().into()),
    ]
}
