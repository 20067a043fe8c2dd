//! The exchange of wire formats (OpenWire, section 2).

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::other_protocol::looks_like;
use super::{CommandReader, CommandWriter, LinkError};
use crate::codec::Structure;
use crate::codec::negotiation::{Agreement, Preferences};

/// Sends what this side prefers, waits for what the peer does, and has both halves speak what follows from that.
///
/// # Errors
/// The peer cannot be talked to. It can still be told so with the writer, which speaks the format of the first frame.
pub(crate) async fn handshake<R, W>(
    reader: &mut CommandReader<R>,
    writer: &mut CommandWriter<W>,
    ours: &Preferences,
) -> Result<Agreement, LinkError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    writer.put(&ours.info()?.into())?;
    writer.flush().await?;
    let limit = ours.initial_delay;
    let first = timeout(limit, reader.next()).await.map_err(|_| LinkError::NoWireFormat { limit })?;
    let first = match first {
        Err(LinkError::Frame(error)) => {
            let protocol = looks_like(reader.received());
            return Err(protocol.map_or(error.into(), |protocol| LinkError::OtherProtocol { protocol }));
        }
        first => first?,
    };
    let Structure::WireFormatInfo(theirs) = first else {
        return Err(LinkError::NotWireFormat { found: first.name() });
    };
    let agreement = ours.negotiate(&theirs)?;
    // A peer begins to look whether it has been silent after this delay, and what it said before that counts as said then.
    let silence = agreement.maximum_inactivity.map(|silence| silence.saturating_add(agreement.initial_delay));
    reader.agree(agreement.format, silence);
    writer.agree(agreement.format);
    Ok(agreement)
}
