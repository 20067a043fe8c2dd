//! A peer that speaks OpenWire in its frames, as a client of another make does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use corriere_core::{Body, DestinationKind, Message};
use corriere_openwire::negotiation::{Agreement, Preferences};
use corriere_openwire::structures::{
    self as wire, AckType, ConnectionId, ConsumerId, ConsumerInfo, MessageAck, MessageDispatch, MessageId,
    ProducerId, ProducerInfo, RemoveInfo, SessionId, SessionInfo, TransactionInfo, TransactionOperation,
};
use corriere_openwire::{Frames, Structure, WireFormat};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::Server;

/// Beyond this a test hangs.
const HANG: Duration = Duration::from_secs(120);

/// A socket and what was agreed on.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    frames: Frames,
    pub(crate) format: WireFormat,
    pub(crate) connection: ConnectionId,
    /// What came while an answer was waited for.
    early: Vec<Structure>,
    last_command: i32,
    last_message: i64,
}

/// A queue.
pub(crate) fn queue(name: &str) -> wire::Destination {
    wire::Destination::new(DestinationKind::Queue, name)
}

/// A topic.
pub(crate) fn topic(name: &str) -> wire::Destination {
    wire::Destination::new(DestinationKind::Topic, name)
}

impl Peer {
    /// A socket on which nothing was said.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            frames: Frames::new(1 << 30),
            format: WireFormat::default(),
            connection: ConnectionId { value: format!("ID:test-{number}:1").into() },
            early: Vec::new(),
            last_command: 0,
            last_message: 0,
        }
    }

    /// Agrees on ActiveMQ's defaults.
    pub(crate) async fn greet(address: SocketAddr) -> Self {
        Self::greet_with(address, &Preferences::default()).await.0
    }

    pub(crate) async fn greet_with(address: SocketAddr, preferences: &Preferences) -> (Self, Agreement) {
        let mut peer = Self::connect(address).await;
        peer.put(&preferences.info().unwrap().into()).await;
        let Structure::WireFormatInfo(theirs) = peer.next().await else { panic!("it comes first") };
        let agreement = preferences.negotiate(&theirs).unwrap();
        peer.format = agreement.format;
        assert!(matches!(peer.next().await, Structure::BrokerInfo(_)));
        (peer, agreement)
    }

    /// Writes a structure as it is.
    pub(crate) async fn put(&mut self, structure: &Structure) {
        let mut bytes = Vec::new();
        self.format.encode(structure, &mut bytes).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next structure; `None` when the socket is closed.
    pub(crate) async fn read(&mut self) -> Option<Structure> {
        loop {
            if let Some(frame) = self.frames.next_frame().unwrap() {
                match self.format.decode(&frame).unwrap() {
                    Some(structure) => return Some(structure),
                    None => continue,
                }
            }
            self.frames.reserve(4_096);
            let read = timeout(HANG, self.stream.read_buf(self.frames.buffer_mut())).await;
            match read.expect("something comes") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next structure but for words that there is still somebody.
    pub(crate) async fn next(&mut self) -> Structure {
        if !self.early.is_empty() {
            return self.early.remove(0);
        }
        loop {
            match self.read().await.expect("the connection is open") {
                Structure::KeepAliveInfo(_) => {}
                structure => return structure,
            }
        }
    }

    /// Whether nothing comes of all that was asked so far: the broker confirms a producer after what it had to do before. What the
    /// acceptor says of that by itself comes before it takes the next command, and so before the second answer.
    pub(crate) async fn is_silent(&mut self) -> bool {
        for _ in 0..2 {
            let value = i64::from(self.last_command) + 1_000_000;
            let producer = self.producer(-1, value).await;
            self.request(RemoveInfo { object_id: Some(producer.into()), ..RemoveInfo::default() }).await;
        }
        self.early.is_empty()
    }

    /// Whether nothing comes, where nothing can be asked as it would not be read.
    pub(crate) async fn is_not_read(&mut self, server: &Server) -> bool {
        server.until_still(|| ()).await;
        self.early.is_empty() && timeout(Duration::ZERO, self.read()).await.is_err()
    }

    /// Reads until the socket is closed, and returns what came.
    pub(crate) async fn rest(&mut self) -> Vec<Structure> {
        let mut rest = std::mem::take(&mut self.early);
        while let Some(structure) = self.read().await {
            rest.push(structure);
        }
        rest
    }

    fn next_command(&mut self) -> i32 {
        self.last_command += 1;
        self.last_command
    }

    /// Sends a command for which no answer is asked.
    pub(crate) async fn tell(&mut self, command: impl Into<Structure>) {
        let mut command = command.into();
        command.set_command_id(self.next_command());
        self.put(&command).await;
    }

    /// Sends a command that asks for an answer, whatever it says itself.
    pub(crate) async fn begin(&mut self, command: impl Into<Structure>) -> i32 {
        let mut command = command.into();
        let id = self.next_command();
        command.set_command_id(id);
        let mut bytes = Vec::new();
        self.format.encode(&command, &mut bytes).unwrap();
        // Size, type and number stand before the flag.
        bytes[9] = 1;
        self.stream.write_all(&bytes).await.unwrap();
        id
    }

    /// The answer to a command; what comes meanwhile is kept.
    pub(crate) async fn answer(&mut self, id: i32) -> Structure {
        let mut kept = Vec::new();
        loop {
            let structure = self.next().await;
            let answered = match &structure {
                Structure::Response(response) => Some(response.correlation_id),
                Structure::ExceptionResponse(response) => Some(response.correlation_id),
                Structure::DataArrayResponse(response) => Some(response.correlation_id),
                _ => None,
            };
            if answered == Some(id) {
                kept.append(&mut self.early);
                self.early = kept;
                return structure;
            }
            kept.push(structure);
        }
    }

    /// Sends a command and waits until it is done.
    pub(crate) async fn request(&mut self, command: impl Into<Structure>) {
        let id = self.begin(command).await;
        let answer = self.answer(id).await;
        assert!(matches!(answer, Structure::Response(_)), "{answer:?}");
    }

    /// Sends a command that is refused: the class and the words of the exception.
    pub(crate) async fn refused(&mut self, command: impl Into<Structure>) -> (String, String) {
        let id = self.begin(command).await;
        match self.answer(id).await {
            Structure::ExceptionResponse(response) => words(response.exception),
            answer => panic!("it is not refused: {answer:?}"),
        }
    }

    /// The next structure, which is an error that nobody asked for.
    pub(crate) async fn error(&mut self) -> (String, String) {
        match self.next().await {
            Structure::ConnectionError(error) => words(error.exception),
            other => panic!("it is no error: {other:?}"),
        }
    }

    pub(crate) async fn introduce(&mut self) {
        self.request(self.introduction()).await;
    }

    pub(crate) fn introduction(&self) -> wire::ConnectionInfo {
        wire::ConnectionInfo { connection_id: self.connection.clone(), ..Default::default() }
    }

    pub(crate) fn session_id(&self, value: i64) -> SessionId {
        SessionId { connection_id: self.connection.value.clone(), value }
    }

    pub(crate) async fn session(&mut self, value: i64) {
        self.tell(SessionInfo { session_id: self.session_id(value), ..Default::default() }).await;
    }

    pub(crate) fn producer_id(&self, session_id: i64, value: i64) -> ProducerId {
        ProducerId { connection_id: self.connection.value.clone(), session_id, value }
    }

    /// Opens a producer for any destination.
    pub(crate) async fn producer(&mut self, session: i64, value: i64) -> ProducerId {
        let producer_id = self.producer_id(session, value);
        self.request(ProducerInfo { producer_id: producer_id.clone(), ..Default::default() }).await;
        producer_id
    }

    pub(crate) fn consumer_info(
        &self,
        (session_id, value): (i64, i64),
        destination: &wire::Destination,
        prefetch_size: i32,
    ) -> ConsumerInfo {
        ConsumerInfo {
            consumer_id: ConsumerId { connection_id: self.connection.value.clone(), session_id, value },
            destination: Some(destination.clone()),
            prefetch_size,
            ..Default::default()
        }
    }

    /// Opens a consumer.
    pub(crate) async fn consumer(
        &mut self,
        id: (i64, i64),
        destination: &wire::Destination,
        prefetch: i32,
    ) -> ConsumerId {
        let info = self.consumer_info(id, destination, prefetch);
        let consumer = info.consumer_id.clone();
        self.request(info).await;
        consumer
    }

    /// A message of the producer 1 of session 1.
    pub(crate) fn text(
        &mut self,
        destination: &wire::Destination,
        text: &str,
        persistent: bool,
    ) -> wire::Message {
        let message = Message::new(Body::text(text));
        self.message(destination, &message, persistent)
    }

    pub(crate) fn message(
        &mut self,
        destination: &wire::Destination,
        message: &Message,
        persistent: bool,
    ) -> wire::Message {
        self.last_message += 1;
        let producer_id = Some(self.producer_id(1, 1));
        let message_id = MessageId {
            producer_id: producer_id.clone(),
            producer_sequence_id: self.last_message,
            ..MessageId::default()
        };
        wire::Message {
            producer_id,
            message_id: Some(message_id),
            destination: Some(destination.clone()),
            persistent,
            timestamp: 1_700_000_000_000,
            priority: 4,
            ..wire::Message::from_core(message).unwrap()
        }
    }

    /// Sends persistent texts from the producer 1 of session 1, one after the other, each confirmed.
    pub(crate) async fn send(&mut self, destination: &wire::Destination, texts: &[&str]) {
        for text in texts {
            let message = self.text(destination, text, true);
            self.request(message).await;
        }
    }

    /// Opens session 1 and its producer 1, and sends texts.
    pub(crate) async fn send_first(&mut self, destination: &wire::Destination, texts: &[&str]) {
        self.session(1).await;
        self.producer(1, 1).await;
        self.send(destination, texts).await;
    }

    /// The next dispatch.
    pub(crate) async fn dispatch(&mut self) -> MessageDispatch {
        match self.next().await {
            Structure::MessageDispatch(dispatch) => *dispatch,
            other => panic!("it is no dispatch: {other:?}"),
        }
    }

    /// The next dispatches, as many as there are texts, which they have.
    pub(crate) async fn dispatches(&mut self, texts: &[&str]) -> Vec<MessageDispatch> {
        let mut found = Vec::new();
        for text in texts {
            let dispatch = self.dispatch().await;
            assert_eq!(text_of(&dispatch), *text);
            found.push(dispatch);
        }
        found
    }

    /// Acknowledges a range of a consumer that has the connection's deliveries to itself.
    pub(crate) fn ack(
        kind: AckType,
        first: &MessageDispatch,
        last: &MessageDispatch,
        transaction: Option<&wire::TransactionId>,
    ) -> MessageAck {
        MessageAck {
            destination: last.destination.clone(),
            transaction_id: transaction.cloned(),
            consumer_id: last.consumer_id.clone(),
            ack_type: kind,
            first_message_id: Some(id_of(first)),
            last_message_id: Some(id_of(last)),
            message_count: i32::try_from(sequence_of(last) - sequence_of(first) + 1).unwrap(),
            ..Default::default()
        }
    }

    /// Acknowledges one message, and waits until that is done.
    pub(crate) async fn settle(&mut self, dispatch: &MessageDispatch) {
        self.request(Self::ack(AckType::Standard, dispatch, dispatch, None)).await;
    }

    pub(crate) fn transaction_id(&self, value: i64) -> wire::TransactionId {
        let connection_id = self.connection.clone();
        wire::TransactionId::Local(wire::LocalTransactionId { value, connection_id })
    }

    pub(crate) fn transaction(&self, value: i64, operation: TransactionOperation) -> TransactionInfo {
        TransactionInfo {
            connection_id: Some(self.connection.clone()),
            transaction_id: Some(self.transaction_id(value)),
            operation,
            ..Default::default()
        }
    }

    /// Closes something, with the broker's number of the last message that was handed over.
    pub(crate) fn removal(object: impl Into<Structure>, last: i64) -> RemoveInfo {
        RemoveInfo { object_id: Some(object.into()), last_delivered_sequence_id: last, ..Default::default() }
    }
}

/// The broker's number of a dispatched message.
pub(crate) fn sequence_of(dispatch: &MessageDispatch) -> i64 {
    id_of(dispatch).broker_sequence_id
}

pub(crate) fn id_of(dispatch: &MessageDispatch) -> MessageId {
    dispatch.message.as_ref().unwrap().message_id.clone().unwrap()
}

pub(crate) fn text_of(dispatch: &MessageDispatch) -> String {
    let message = dispatch.message.as_ref().expect("there is a message");
    message.to_core(Default::default()).unwrap().as_text().unwrap().unwrap().to_owned()
}

pub(crate) fn words(exception: Option<wire::Throwable>) -> (String, String) {
    let exception = exception.expect("it says why");
    (exception.class.to_string(), exception.message.as_deref().unwrap_or_default().to_owned())
}
