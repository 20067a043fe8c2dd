//! The pipeline itself: an order comes in, an e-mail goes out.

use std::time::Duration;

use corriere::prelude::*;

use crate::email::Email;
use crate::input::Entry;
use crate::mailer::Mailer;
use crate::order::Order;

/// Before the first new try of an e-mail.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// Before any.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Confirms an order; taking the order and sending its e-mail commit together or not at all. What is no valid order is a
/// dead letter at once, as another delivery would not change it.
#[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "emails")]
async fn on_order(entry: Entry) -> Result<Email, ListenerError> {
    let order = Order::check(&entry).or_dead_letter()?;
    Ok(Email::confirming(&order))
}

/// Sends an e-mail, which is acknowledged only then. One that cannot be sent now is tried again, later and later but without
/// end, as a server that is down or a full disk is not the order's fault; one that is refused for good is a dead letter.
#[jms_listener(queue = "emails", ack = "client", concurrency = "1-4", container = "mailing")]
async fn on_email(email: Email, mailer: Bean<Mailer>, delivery: Delivery) -> Result<(), ListenerError> {
    match mailer.send(&email).await {
        Err(error) if error.is_final() => Err(error).or_dead_letter(),
        sent => sent.or_retry_after(delay_after(delivery.count())),
    }
}

/// How long an e-mail waits after so many deliveries: 0.2 s, twice as long each time, at most 30 s.
fn delay_after(deliveries: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(deliveries.saturating_sub(1));
    FIRST_DELAY.saturating_mul(doubled).min(LONGEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_delay_is_twice_the_one_before_up_to_half_a_minute() {
        let delays: Vec<_> = (1..=10).map(|count| delay_after(count).as_millis()).collect();
        assert_eq!(delays, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(delay_after(u32::MAX), LONGEST_DELAY);
    }
}
