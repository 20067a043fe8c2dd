//! What a peer asks: who does it.

use std::sync::Arc;

use corriere_core::SessionId;
use corriere_core::provider::{Capability, Command, ConnectOptions, ProviderError, SessionMode};

use super::confirmations::{Answer, Then};
use super::connection::{Connection, Introduced};
use super::ending::Ending;
use super::exceptions::Refusal;
use crate::codec::Structure;
use crate::codec::structures::{self as wire, ConnectionInfo, JavaException, KeepAliveInfo};

/// The session that is there without having been opened.
pub(super) const DEFAULT_SESSION: i64 = -1;

impl Answer {
    /// Of a command.
    pub(super) fn to(command: &Structure) -> Self {
        let command_id = command.command_id().unwrap_or_default();
        Self { command_id, is_required: command.response_required() }
    }

    /// Of what the peer did not ask for.
    pub(super) fn none() -> Self {
        Self { command_id: 0, is_required: false }
    }
}

impl Connection {
    /// Does what the peer asks, or says why not.
    ///
    /// # Errors
    /// The connection ends.
    pub(super) async fn command(&mut self, command: Structure) -> Result<(), Ending> {
        let answer = Answer::to(&command);
        let name = command.name();
        let done = match command {
            Structure::ConnectionInfo(info) => return self.connect(*info, answer).await,
            Structure::ShutdownInfo(_) => return Err(Ending::Left),
            Structure::KeepAliveInfo(_) => {
                if answer.is_required {
                    self.deliveries.answer(KeepAliveInfo::default());
                }
                return Ok(());
            }
            Structure::SessionInfo(info) => self.open_session(&info.session_id, answer),
            Structure::ProducerInfo(info) => self.open_producer(&info, answer),
            Structure::ConsumerInfo(info) => self.open_consumer(*info, answer),
            Structure::RemoveInfo(info) => self.remove(&info, answer),
            Structure::Message(message) => self.send(&message, answer),
            Structure::MessageAck(ack) => self.acknowledge(&ack, answer),
            Structure::MessagePull(pull) => self.pull(&pull, answer),
            Structure::TransactionInfo(info) => self.transaction(&info, answer),
            Structure::DestinationInfo(info) => self.change_destination(&info, answer),
            Structure::RemoveSubscriptionInfo(info) => self.unsubscribe(&info, answer),
            Structure::ConsumerControl(control) => self.control(&control, answer),
            // Of no meaning to a broker that stands alone, or not to be obeyed.
            Structure::BrokerInfo(_)
            | Structure::BrokerSubscriptionInfo(_)
            | Structure::ConnectionControl(_)
            | Structure::ConnectionError(_)
            | Structure::ControlCommand(_)
            | Structure::DiscoveryEvent(_)
            | Structure::FlushCommand(_)
            | Structure::LastPartialCommand(_)
            | Structure::MessageDispatchNotification(_)
            | Structure::PartialCommand(_)
            | Structure::ProducerAck(_)
            | Structure::ReplayCommand(_) => {
                self.done(answer);
                Ok(())
            }
            other => Err(Refusal::new(
                JavaException::Io,
                format_args!("{} is nothing that a broker can be asked", other.name()),
            )),
        };
        if let Err(refusal) = done {
            self.say_refused(name, &refusal);
            self.refuse(answer, refusal);
        }
        Ok(())
    }

    /// Says in the log that a command was refused, once for each kind on a connection, as some clients try again and again.
    fn say_refused(&mut self, command: &'static str, refusal: &Refusal) {
        let is_first = self.said_refused.insert(command);
        let (peer, client_id) = (self.peer, self.client_id());
        if is_first {
            tracing::warn!(
                %peer, client_id, command, %refusal,
                "a command is refused; later ones of this kind on this connection are logged for debugging only"
            );
        } else {
            tracing::debug!(%peer, client_id, command, %refusal, "a command is refused");
        }
    }

    /// Takes a client in, by connecting to the provider for it. Under an id that is in use, the older connection ends.
    async fn connect(&mut self, info: ConnectionInfo, answer: Answer) -> Result<(), Ending> {
        if self.is_closed || self.introduced.is_some() {
            self.settle(answer, self.provider().map(drop));
            return Ok(());
        }
        let id = &info.connection_id.value;
        let text = |text: Option<Arc<str>>| text.filter(|text| !text.is_empty());
        let user = text(info.user_name);
        let password = info.password.filter(|password| !password.0.is_empty());
        let refusal = if id.is_empty() {
            Refusal::illegal_state("the connection has no id")
        } else {
            let registration = self.shared.registry.enter(id, &self.oust).await;
            let client_id = text(info.client_id);
            let options = ConnectOptions {
                connection: info.connection_id.to_core(),
                client_id: client_id.clone(),
                user: user.clone(),
                password,
            };
            let sink = Arc::clone(&self.deliveries);
            match self.shared.provider.connect(options, sink).await {
                Ok(provider) => {
                    let id = Arc::clone(id);
                    self.introduced = Some(Introduced::new(provider, id, registration));
                    self.client_id = client_id;
                    self.has_failed_over = info.failover_reconnect;
                    tracing::debug!(
                        peer = %self.peer, client_id = self.client_id(), connection = %info.connection_id,
                        "a client has connected"
                    );
                    return self.begin(answer);
                }
                Err(ProviderError::Unsupported(Capability::Authentication)) => not_known(user.as_deref()),
                Err(error) => error.into(),
            }
        };
        tracing::warn!(peer = %self.peer, %refusal, "a client is refused");
        self.refuse(answer, refusal);
        Err(Ending::Answered)
    }

    fn begin(&mut self, answer: Answer) -> Result<(), Ending> {
        let session = SessionId(self.next_number());
        self.sessions.insert(DEFAULT_SESSION, session);
        let open = Command::OpenSession { session, mode: SessionMode::Client };
        self.submit(open, Then::Answer(answer)).map_err(Ending::Refused)
    }

    /// That an id of the peer's is one of this connection.
    pub(super) fn check_owner(&self, connection_id: &str, what: &str) -> Result<(), Refusal> {
        self.provider()?;
        match &self.introduced {
            Some(introduced) if *introduced.id != *connection_id => {
                Err(Refusal::illegal_state(format_args!(
                    "{what} belongs to connection `{connection_id}`; expected one of connection `{}`",
                    introduced.id
                )))
            }
            _ => Ok(()),
        }
    }

    /// Closes what the peer names: a consumer, a producer, a session, or the connection.
    fn remove(&mut self, info: &wire::RemoveInfo, answer: Answer) -> Result<(), Refusal> {
        let last = info.last_delivered_sequence_id;
        match &info.object_id {
            Some(Structure::ConsumerId(id)) => self.close_consumer(id, last, answer),
            Some(Structure::ProducerId(id)) => self.close_producer(id, answer),
            Some(Structure::SessionId(id)) => self.close_session(id, last, answer),
            Some(Structure::ConnectionId(id)) => self.close_connection(id, last, answer),
            Some(other) => Err(Refusal::illegal_state(format_args!("{} cannot be removed", other.name()))),
            None => Err(Refusal::illegal_state("RemoveInfo does not say what is to be removed")),
        }
    }
}

fn not_known(user: Option<&str>) -> Refusal {
    let who = user.map_or_else(|| "a password".to_owned(), |user| format!("user `{user}`"));
    Refusal::new(
        JavaException::Security,
        format_args!(
            "{who} cannot be checked: this broker has no users yet; expected neither user name nor password"
        ),
    )
}
