//! E-mails that confirm orders.

use lettre::address::AddressError;
use lettre::message::{Mailbox, MultiPart};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::order::Order;
use crate::render;

const SENDER: &str = "Corriere Fine Foods <orders@corriere.example>";

/// An e-mail, which is the message on `emails`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Email {
    pub order_id: String,
    pub to_name: String,
    pub to_address: String,
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// An e-mail that cannot be written as a MIME message.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum EmailError {
    #[error("address: {0}")]
    Address(#[from] AddressError),
    #[error("message: {0}")]
    Message(#[from] lettre::error::Error),
}

impl Email {
    /// The e-mail that confirms an order.
    pub(crate) fn confirming(order: &Order) -> Self {
        Self {
            order_id: order.id.clone(),
            to_name: order.contact.clone(),
            to_address: order.email.to_string(),
            subject: format!("Your order {} for {}", order.id, order.company),
            text: render::text(order),
            html: render::html(order),
        }
    }

    /// The name of its file. It is the order's, so confirming an order twice makes one file.
    pub(crate) fn file_name(&self) -> String {
        format!("order-{}.eml", self.order_id)
    }

    /// The e-mail as a MIME message.
    pub(crate) fn to_mime(&self) -> Result<Vec<u8>, EmailError> {
        let to = Mailbox::new(Some(self.to_name.clone()), self.to_address.parse()?);
        let message = lettre::Message::builder()
            .from(SENDER.parse()?)
            .to(to)
            .subject(&self.subject)
            .message_id(Some(format!("<order-{}@corriere.example>", self.order_id)))
            .multipart(MultiPart::alternative_plain_html(self.text.clone(), self.html.clone()))?;
        Ok(message.formatted())
    }
}
