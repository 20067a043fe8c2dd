//! How a connection begins: the socket, the wire formats, who comes.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::provider::{ConnectOptions, DeliverySink, ProviderError};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::address::Address;
use super::connection::TcpConnection;
use super::error::{About, refusal};
use super::state::Peer;
use crate::codec::Structure;
use crate::codec::negotiation::{Agreement, Preferences};
use crate::codec::structures::{ConnectionId, ConnectionInfo, WireFormatInfo};
use crate::link::{CommandReader, CommandWriter, LinkError, handshake};
use crate::redelivery;

/// How long each step of a connect may take: the socket, the wire formats, the answer to who comes.
const STEP: Duration = Duration::from_secs(10);
/// The number of the command that says who comes.
pub(super) const FIRST_COMMAND: i32 = 1;

/// Both halves of a connection that speaks, and what was agreed on.
pub(super) struct Link {
    pub(super) reader: CommandReader<OwnedReadHalf>,
    pub(super) writer: CommandWriter<OwnedWriteHalf>,
    pub(super) agreement: Agreement,
}

/// Connects. Dropping the future closes what there is of the socket.
pub(super) async fn connect(
    address: &Address,
    options: ConnectOptions,
    sink: Arc<dyn DeliverySink>,
) -> Result<TcpConnection, ProviderError> {
    let mut link = open(address).await?;
    let connection = ConnectionId::from(&options.connection);
    let client_id = options.client_id.clone();
    introduce(address, &mut link, connection.clone(), options).await?;
    let redelivers = redelivery::is_spoken_by(&link.agreement.properties);
    let peer = Peer { url: address.to_string(), connection, client_id, redelivers };
    Ok(TcpConnection::start(peer, link, sink))
}

async fn open(address: &Address) -> Result<Link, ProviderError> {
    let target = (address.host.as_str(), address.port);
    let stream = step(address, "to connect", TcpStream::connect(target)).await?;
    let stream = stream.map_err(|error| address.unreachable(error))?;
    let mut preferences = Preferences { host: Some(address.host.as_str().into()), ..Preferences::default() };
    redelivery::announce(&mut preferences.others);
    // Commands are put together before they are written, so what is written is never too small to be sent.
    if let Err(error) = stream.set_nodelay(preferences.tcp_no_delay) {
        tracing::debug!(peer = %address, %error, "small packets may be held back");
    }
    let (read, write) = stream.into_split();
    let mut reader = CommandReader::new(read, WireFormatInfo::MAXIMUM_FRAME_SIZE);
    let mut writer = CommandWriter::new(write);
    let agreed = handshake(&mut reader, &mut writer, &preferences).await;
    let agreement = agreed.map_err(|error| not_understood(address, &error))?;
    Ok(Link { reader, writer, agreement })
}

/// Says who comes, and waits until the peer has agreed to that.
async fn introduce(
    address: &Address,
    link: &mut Link,
    connection_id: ConnectionId,
    options: ConnectOptions,
) -> Result<(), ProviderError> {
    // Brokers want one, and a connection without has its identity for it, as in ActiveMQ.
    let client_id = options.client_id.unwrap_or_else(|| Arc::clone(&connection_id.value));
    let info = ConnectionInfo {
        command_id: FIRST_COMMAND,
        response_required: true,
        connection_id,
        client_id: Some(Arc::clone(&client_id)),
        user_name: options.user,
        password: options.password,
        client_master: true,
        ..ConnectionInfo::default()
    };
    let about = About::Connection(client_id);
    let link_error = |error: LinkError| address.unreachable(error);
    link.writer.put(&info.into()).map_err(|error| address.unreachable(error))?;
    link.writer.flush().await.map_err(link_error)?;
    let answered = async {
        loop {
            match link.reader.next().await.map_err(link_error)? {
                Structure::ExceptionResponse(response) => {
                    return Err(refusal(response.exception, &about, &address.to_string()));
                }
                Structure::ConnectionError(failed) => {
                    return Err(refusal(failed.exception, &about, &address.to_string()));
                }
                Structure::Response(response) if response.correlation_id == FIRST_COMMAND => return Ok(()),
                // A broker introduces itself meanwhile.
                _ => {}
            }
        }
    };
    step(address, "for the broker to accept the connection", answered).await?
}

async fn step<T>(address: &Address, what: &str, step: impl Future<Output = T>) -> Result<T, ProviderError> {
    timeout(STEP, step).await.map_err(|_| address.unreachable(format_args!("waited {STEP:?} {what}")))
}

fn not_understood(address: &Address, error: &LinkError) -> ProviderError {
    match error {
        LinkError::NotWireFormat { .. } | LinkError::Frame(_) | LinkError::Decode(_) => {
            address.unreachable(format_args!("who answers there does not speak OpenWire: {error}"))
        }
        other => address.unreachable(other),
    }
}
