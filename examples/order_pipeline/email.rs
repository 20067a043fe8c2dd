//! E-mails that confirm orders.

use lettre::address::{AddressError, Envelope};
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

    /// The name of its file. It is the order's, so confirming an order twice makes one file, and different orders make
    /// different files even where a file system takes `A` for `a`.
    pub(crate) fn file_name(&self) -> String {
        let mut name = String::from("order-");
        for c in self.order_id.chars() {
            if c.is_ascii_uppercase() || c == '_' {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        }
        name + ".eml"
    }

    /// From whom to whom, as a mail server is told.
    pub(crate) fn envelope(&self) -> Result<Envelope, EmailError> {
        let sender: Mailbox = SENDER.parse()?;
        Ok(Envelope::new(Some(sender.email), vec![self.to_address.parse()?])?)
    }

    /// The e-mail as a MIME message.
    pub(crate) fn to_mime(&self) -> Result<Vec<u8>, EmailError> {
        let to = Mailbox::new(Some(one_line(&self.to_name)), self.to_address.parse()?);
        let message = lettre::Message::builder()
            .from(SENDER.parse()?)
            .to(to)
            .subject(one_line(&self.subject))
            .message_id(Some(format!("<order-{}@corriere.example>", self.order_id)))
            .multipart(MultiPart::alternative_plain_html(self.text.clone(), self.html.clone()))?;
        Ok(message.formatted())
    }
}

/// A text fit for a header. A field of an order may hold line ends, and lettre panics at control characters in a name.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email() -> Email {
        Email {
            order_id: "5001.2".to_owned(),
            to_name: "Søren \"Bee\" Ågård, jr.".to_owned(),
            to_address: "soren@brodsmor.example".to_owned(),
            subject: "Your order".to_owned(),
            text: "text".to_owned(),
            html: "<p>html</p>".to_owned(),
        }
    }

    fn headers(email: &Email) -> String {
        let mime = String::from_utf8(email.to_mime().unwrap()).unwrap();
        mime.split_once("\r\n\r\n").unwrap().0.to_owned()
    }

    #[test]
    fn what_an_order_says_cannot_add_headers() {
        let line_end = "x\r\nBcc: everyone@corriere.example\n\nno more headers".to_owned();
        for email in [Email { to_name: line_end.clone(), ..email() }, Email { subject: line_end, ..email() }]
        {
            let headers = headers(&email);
            let names: Vec<_> = headers
                .lines()
                .filter(|line| !line.starts_with([' ', '\t']))
                .map(|line| line.split_once(':').map_or(line, |(name, _)| name))
                .collect();
            assert_eq!(
                names,
                ["From", "To", "Subject", "Message-ID", "MIME-Version", "Date", "Content-Type"],
                "{headers}"
            );
        }
    }

    #[test]
    fn rounds_of_an_order_are_different_emails() {
        let first = Email { order_id: "5001".to_owned(), ..email() };
        assert_eq!(email().file_name(), "order-5001.2.eml");
        assert_ne!(first.file_name(), email().file_name());
        assert!(headers(&email()).contains("Message-ID: <order-5001.2@corriere.example>"));
    }

    #[test]
    fn no_two_orders_share_a_file_where_case_does_not_count() {
        let file_name = |id: &str| Email { order_id: id.to_owned(), ..email() }.file_name();
        assert_eq!(
            ["5001", "a1", "A1", "_a1", "_A1"].map(file_name),
            ["order-5001.eml", "order-a1.eml", "order-_a1.eml", "order-__a1.eml", "order-___a1.eml"]
        );
        assert_eq!(file_name("CON"), "order-_c_o_n.eml");
    }

    #[test]
    fn the_longest_names_make_lines_that_a_mail_may_have() {
        for c in ['x', '"', '\\', '\n', ' ', 'é', '雪', '.', ',', '@', '<', '('] {
            let name = c.to_string().repeat(320);
            let email =
                Email { to_name: name.clone(), subject: format!("Your order 1 for {name}"), ..email() };
            let headers = headers(&email);
            assert!(headers.lines().all(|line| line.len() <= 998), "{c:?}: {headers}");
        }
    }

    #[test]
    fn an_address_that_is_none_is_an_error() {
        let email = Email { to_address: "nobody".to_owned(), ..email() };
        assert!(matches!(email.to_mime(), Err(EmailError::Address(_))));
    }
}
