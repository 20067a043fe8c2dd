//! A peer that does what a test says.

use std::sync::{Arc, Mutex};

use corriere_core::ConnectionId;
use corriere_core::provider::{
    Command, ConnectOptions, DeliverySink, Dispatch, Event, Provider, ProviderConnection, ProviderError,
    SessionMode,
};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::{TcpProvider, address::Address};
use crate::codec::Structure;
use crate::codec::negotiation::Preferences;
use crate::codec::structures::{ExceptionResponse, JavaException, Response, Throwable};
use crate::link::{CommandReader, CommandWriter, LinkError, handshake};

/// Where a client finds it.
pub(super) struct Door {
    listener: TcpListener,
    address: Address,
}

/// One connection, as the peer has it.
pub(super) struct Scripted {
    reader: CommandReader<OwnedReadHalf>,
    writer: CommandWriter<OwnedWriteHalf>,
}

/// What came to the client.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub(super) deliveries: Mutex<Vec<Dispatch>>,
    pub(super) events: Mutex<Vec<Event>>,
}

impl DeliverySink for Came {
    fn deliver(&self, batch: Vec<Dispatch>) {
        self.deliveries.lock().unwrap().extend(batch);
    }

    fn notify(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

/// What a client that was accepted has.
pub(super) struct Client {
    pub(super) connection: Arc<dyn ProviderConnection>,
    pub(super) came: Arc<Came>,
}

impl Door {
    pub(super) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
        Self { listener, address }
    }

    pub(super) async fn connect(&self) -> Result<Client, ProviderError> {
        self.connect_as(None).await
    }

    async fn connect_as(&self, client_id: Option<&str>) -> Result<Client, ProviderError> {
        let came = Arc::new(Came::default());
        let connection = ConnectionId::foreign("ID:test-1");
        let client_id = client_id.map(Arc::from);
        let options = ConnectOptions { connection, client_id, user: None, password: None };
        let provider = TcpProvider { address: self.address.clone() };
        let connection = provider.connect(options, Arc::clone(&came) as Arc<dyn DeliverySink>).await?;
        Ok(Client { connection, came })
    }

    /// Somebody who came, and was told nothing yet.
    pub(super) async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// Somebody who came, with the wire format agreed on.
    pub(super) async fn greet(&self, preferences: &Preferences) -> Scripted {
        let (read, write) = self.accept().await.into_split();
        let mut peer =
            Scripted { reader: CommandReader::new(read, 1_000_000), writer: CommandWriter::new(write) };
        handshake(&mut peer.reader, &mut peer.writer, preferences).await.unwrap();
        peer
    }

    /// A client that was taken in, and its peer.
    pub(super) async fn take_in(&self, preferences: &Preferences) -> (Client, Scripted) {
        self.take_in_as(None, preferences).await
    }

    /// The same with a client id.
    pub(super) async fn take_in_as(
        &self,
        client_id: Option<&str>,
        preferences: &Preferences,
    ) -> (Client, Scripted) {
        let taking = async {
            let mut peer = self.greet(preferences).await;
            let info = peer.next().await;
            assert_eq!(info.name(), "ConnectionInfo");
            peer.done(&info).await;
            peer
        };
        let (client, peer) = tokio::join!(self.connect_as(client_id), taking);
        (client.unwrap(), peer)
    }
}

impl Scripted {
    /// What comes next, but for words against silence.
    pub(super) async fn next(&mut self) -> Structure {
        self.try_next().await.unwrap()
    }

    pub(super) async fn try_next(&mut self) -> Result<Structure, LinkError> {
        loop {
            match self.reader.next().await? {
                Structure::KeepAliveInfo(alive) if !alive.response_required => {}
                structure => return Ok(structure),
            }
        }
    }

    /// Reads the beginning of a large frame, and nothing more ever after.
    pub(super) async fn sees_a_large_frame_begin(&mut self) {
        self.reader.limit(1_024);
        let refused = self.reader.next().await;
        assert!(matches!(refused, Err(LinkError::Frame(_))), "{refused:?}");
    }

    pub(super) async fn say(&mut self, structure: impl Into<Structure>) {
        self.writer.put(&structure.into()).unwrap();
        self.writer.flush().await.unwrap();
    }

    /// Answers that a command is refused.
    pub(super) async fn refused(&mut self, command: &Structure, exception: JavaException, words: &str) {
        let correlation_id = command.command_id().unwrap();
        let exception = Some(Throwable::new(exception, words));
        self.say(ExceptionResponse { correlation_id, exception, ..ExceptionResponse::default() }).await;
    }

    /// Answers a command.
    pub(super) async fn done(&mut self, command: &Structure) {
        assert!(command.response_required(), "nobody waits for an answer to {command:?}");
        let correlation_id = command.command_id().unwrap();
        self.say(Response { correlation_id, ..Response::default() }).await;
    }
}

impl Client {
    /// Opens session 1 at the peer.
    pub(super) async fn open_session(&self, peer: &mut Scripted) {
        let session = corriere_core::SessionId(1);
        let opened = self.connection.submit(Command::OpenSession { session, mode: SessionMode::Client });
        let info = peer.next().await;
        peer.done(&info).await;
        opened.await.unwrap();
    }

    /// Submits a command of which the peer is told, and which is confirmed when the peer has done it.
    pub(super) async fn told(&self, peer: &mut Scripted, command: Command) -> Structure {
        let receipt = self.connection.submit(command);
        let structure = peer.next().await;
        peer.done(&structure).await;
        receipt.await.unwrap();
        structure
    }

    pub(super) fn lost(&self) -> Option<ProviderError> {
        self.came.events.lock().unwrap().iter().find_map(|event| match event {
            Event::Lost { error } => Some(error.clone()),
            _ => None,
        })
    }
}

impl Scripted {
    /// The answer to a word that asked whether the client is alive, and what it wrote against silence before.
    pub(super) async fn next_alive(&mut self) -> crate::codec::structures::KeepAliveInfo {
        match self.reader.next().await.unwrap() {
            Structure::KeepAliveInfo(mut alive) => {
                alive.command_id = 0;
                *alive
            }
            other => panic!("{other:?}"),
        }
    }
}
