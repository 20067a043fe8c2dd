//! An order comes in, is confirmed by an e-mail, and the e-mail is sent: the two listeners, the bean and the template that
//! most programs are made of. E-mails become files here, so that no mail server is needed.
//!
//! It runs until Ctrl-C, or with `--once` until its order is confirmed.

use std::sync::Arc;

use corriere::prelude::*;
use corriere_examples::{Outbox, OutboxError};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    email: String,
    total: Decimal,
}

#[derive(Serialize, Deserialize)]
struct Email {
    to: String,
    subject: String,
    body: String,
}

/// Confirms an order; taking the order and sending its e-mail commit together or not at all.
#[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "emails")]
async fn on_order(order: Order) -> Result<Email, ListenerError> {
    Ok(Email {
        to: order.email,
        subject: format!("Your order {}", order.id),
        body: format!("Thank you for your order. Its total is {}.", order.total),
    })
}

#[jms_listener(queue = "emails", ack = "client")]
async fn on_email(email: Email, mailer: Bean<Mailer>, delivery: Delivery) -> Result<(), ListenerError> {
    mailer.send(&email).await.or_retry_after(secs(5))?;
    delivery.acknowledge().await?;
    Ok(())
}

/// Sends e-mails by writing them into a directory.
#[derive(Debug)]
struct Mailer {
    outbox: Outbox,
    sent: watch::Sender<u64>,
}

#[derive(Debug, Deserialize)]
struct MailerConfig {
    url: String,
}

#[derive(Debug, Error)]
enum MailerError {
    #[error("`{url}` is no place for e-mails; expected `file:DIRECTORY`")]
    Url { url: String },
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

#[corriere::bean(type = "file_mailer")]
impl Mailer {
    fn new(config: MailerConfig) -> Result<Self, MailerError> {
        match config.url.strip_prefix("file:") {
            Some(directory) => Ok(Self { outbox: Outbox::open(directory)?, sent: watch::Sender::new(0) }),
            None => Err(MailerError::Url { url: config.url }),
        }
    }

    /// Writes the e-mail. Its file is named for its subject, so sending it twice makes one file.
    async fn send(&self, email: &Email) -> Result<(), Arc<OutboxError>> {
        let name = email.subject.replace(|c: char| !c.is_alphanumeric(), "-") + ".eml";
        let text = format!("To: {}\r\nSubject: {}\r\n\r\n{}\r\n", email.to, email.subject, email.body);
        let outbox = self.outbox.clone();
        spawn_blocking(move || outbox.put(&name, text.as_bytes())).await.expect("writing does not panic")?;
        self.sent.send_modify(|sent| *sent += 1);
        Ok(())
    }

    /// Waits until an e-mail is sent.
    async fn sent(&self) {
        let _ = self.sent.subscribe().wait_for(|sent| *sent > 0).await;
    }
}

#[corriere::main]
async fn main() -> Result<(), Error> {
    let app =
        Application::from_config(concat!(env!("CARGO_MANIFEST_DIR"), "/orders/config.toml"))?.start().await?;
    let template: JmsTemplate = app.bean("order_template")?;
    let order = Order { id: 4711, email: "soren@brodsmor.example".to_owned(), total: Decimal::new(89272, 2) };
    template.convert_and_send(&order).await?;
    if std::env::args().any(|argument| argument == "--once") {
        app.bean::<Bean<Mailer>>("mailer")?.sent().await;
        app.stop().await;
        return Ok(());
    }
    app.run_until_shutdown().await // Ctrl-C / SIGTERM: drain with a deadline
}
