//! Receiving: one message, pulled.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Consumer, Delivery, Error, Message, Release};
use serde::de::DeserializeOwned;

use super::address::Address;
use super::error::TemplateError;
use super::sessions::{Lease, Purpose, Settlement};
use super::{JmsTemplate, ReceiveTimeout};
use crate::converter::ConversionError;

impl JmsTemplate {
    pub(super) async fn receive_message(
        &self,
        address: Option<Address>,
    ) -> Result<Option<Message>, TemplateError> {
        let (lease, consumer) = self.consumer(address).await?;
        let received = match self.settings.receive_timeout {
            ReceiveTimeout::Indefinite => consumer.receive().await,
            ReceiveTimeout::NoWait => consumer.receive_no_wait().await,
            ReceiveTimeout::After(timeout) => consumer.receive_timeout(timeout).await,
        };
        // Not awaited: from here on the message is the caller's, and a dropped future must not lose it.
        drop(consumer);
        let message = received.map(|delivery| delivery.map(Delivery::into_message));
        lease.settle(message.map_err(Into::into)).await
    }

    pub(super) async fn receive_value<T: DeserializeOwned>(
        &self,
        address: Option<Address>,
    ) -> Result<Option<T>, TemplateError> {
        let (lease, consumer) = self.consumer(address).await?;
        let taken = match self.settings.receive_timeout {
            ReceiveTimeout::Indefinite => consumer.take().await,
            ReceiveTimeout::NoWait => consumer.take_timeout(Duration::ZERO).await,
            ReceiveTimeout::After(timeout) => consumer.take_timeout(timeout).await,
        };
        let delivery = match taken {
            Ok(Some(delivery)) => delivery,
            Ok(None) => {
                drop(consumer);
                return lease.settle(Ok(None)).await;
            }
            Err(error) => return lease.settle(Err(error.into())).await,
        };
        let outcome = match self.settings.converter.decode(delivery.message()) {
            Ok(value) => acknowledge(&delivery).await.map(|()| Some(value)).map_err(Into::into),
            Err(error) => Err(give_back(&lease, &delivery, error).await),
        };
        drop(consumer);
        lease.settle(outcome).await
    }

    async fn consumer(&self, address: Option<Address>) -> Result<(Lease, Consumer), TemplateError> {
        const PULL: u32 = 0;
        let destination = self.settings.destination(address.as_ref(), "receive from")?;
        let lease = self.sessions.lease(Purpose::Wait, self.joining).await?;
        match lease.session().create_consumer_with_prefetch(&destination, PULL).await {
            Ok(consumer) => Ok((lease, consumer)),
            Err(error) => match lease.settle::<Infallible>(Err(error.into())).await {
                Err(error) => Err(error),
            },
        }
    }
}

/// Acknowledges a message without waiting for the broker's word: while it waited its future could be dropped, and the
/// message would be neither in the queue any more nor with the caller.
async fn acknowledge(delivery: &Delivery) -> Result<(), Error> {
    let mut acknowledgement = pin!(delivery.acknowledge());
    match poll_fn(|context| Poll::Ready(acknowledgement.as_mut().poll(context))).await {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Ok(()),
    }
}

/// Returns a message that could not be converted, and the error to report: that of the conversion, even if returning
/// the message fails too, as the message then returns with its session.
async fn give_back(lease: &Lease, delivery: &Delivery, error: ConversionError) -> TemplateError {
    let kind = match lease.settlement() {
        // It belongs to the handler's transaction, which the handler ends by what it makes of this error.
        Settlement::Joined => return error.into(),
        Settlement::Transacted => CauseKind::Failure,
        Settlement::Single => CauseKind::Conversion,
    };
    let cause = Cause { kind, text: error.to_string().into(), listener: None };
    // The conversion is what the caller has to know of.
    let _ = delivery.release(Release::Redeliver { delay: None, cause }).await;
    error.into()
}
