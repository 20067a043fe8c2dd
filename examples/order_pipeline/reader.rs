//! The reader: publishes the input, and keeps its place in it as a message, so that a run after a crash goes on where the
//! one before it stopped.

use std::fmt;
use std::path::Path;

use corriere::core::{AcknowledgeMode, with_session};
use corriere::prelude::*;

use crate::input::Entry;
use crate::run::{QueueCounts, RunError};

/// Orders that are sent in one transaction, so that one sync of the journal serves many.
const BATCH: u64 = 64;

/// All that is to be published: the entries in each of so many rounds.
#[derive(Debug)]
pub(crate) struct Input {
    entries: Vec<Entry>,
    name: InputName,
}

/// What tells one input from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputName {
    /// Where the orders were read, for people: files that were moved are the same input.
    orders: String,
    /// CRC-32C of all entries.
    checksum: u32,
    /// How many entries there are.
    entries: u64,
    /// In how many rounds they are published.
    rounds: u32,
}

/// The one message on `place`: how many orders of the input are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    input: InputName,
    sent: u64,
}

/// A reader at its place, which it has received in a transaction that is still open.
#[derive(Debug)]
pub(crate) struct Reader {
    input: Input,
    sent: u64,
    session: Session,
    orders: JmsTemplate,
    place: JmsTemplate,
}

impl Input {
    pub(crate) fn new(orders: &Path, entries: Vec<Entry>, rounds: u32) -> Self {
        let checksum = entries.iter().fold(0, |checksum, entry| {
            // An entry is made of texts, which all have a form in JSON.
            crc32c::crc32c_append(checksum, &serde_json::to_vec(entry).unwrap_or_default())
        });
        let name = InputName {
            orders: orders.display().to_string(),
            checksum,
            entries: entries.len() as u64,
            rounds,
        };
        Self { entries, name }
    }

    /// How many orders it comes to.
    pub(crate) fn orders(&self) -> u64 {
        self.name.entries * u64::from(self.name.rounds)
    }

    /// The order behind the first so many.
    fn order(&self, sent: u64) -> Entry {
        let round = u32::try_from(sent / self.name.entries).unwrap_or(u32::MAX).saturating_add(1);
        let index = usize::try_from(sent % self.name.entries).unwrap_or(usize::MAX);
        self.entries[index].in_round(round)
    }
}

impl InputName {
    /// Whether it has the same orders, wherever they were read.
    fn is_same(&self, other: &Self) -> bool {
        (self.checksum, self.entries, self.rounds) == (other.checksum, other.entries, other.rounds)
    }
}

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { orders, checksum, entries, rounds } = self;
        write!(f, "{entries} orders of {orders} × {rounds} (checksum {checksum:08x})")
    }
}

impl Reader {
    /// Takes its place: the one that the run before it has left, or the beginning.
    pub(crate) async fn open(app: &Application, input: Input) -> Result<Self, RunError> {
        let orders: JmsTemplate = app.bean("order_template")?;
        let place: JmsTemplate = app.bean("place_template")?;
        let connection = place.connection_factory().create_connection().await.map_err(TemplateError::from)?;
        connection.start().map_err(TemplateError::from)?;
        let session = connection.create_session(AcknowledgeMode::Transacted).await;
        let session = session.map_err(TemplateError::from)?;
        let mut reader = Self { input, sent: 0, session, orders, place };

        let is_new = QueueCounts::now(app, "place")?.counts.pending == 0;
        if is_new && QueueCounts::now(app, "orders")?.totals.enqueued > 0 {
            return Err(RunError::NoPlace);
        }
        if !is_new {
            let Place { input, sent } = reader.take_place().await?;
            if !input.is_same(&reader.input.name) {
                let expected = reader.input.name.to_string();
                return Err(RunError::OtherInput { found: input.to_string(), expected });
            }
            reader.sent = sent;
        }
        Ok(reader)
    }

    /// Publishes what is not sent yet. In each transaction the place is received, the next orders are sent, and the new place
    /// is sent; so an order is sent if and only if the place says so, whenever the process dies. Dropping the future rolls
    /// the transaction at hand back.
    pub(crate) async fn publish(mut self) -> Result<(), RunError> {
        loop {
            with_session(self.session.clone(), self.send_batch()).await?;
            self.session.commit().await.map_err(TemplateError::from)?;
            if self.sent == self.input.orders() {
                return Ok(());
            }
            self.sent = self.take_place().await?.sent;
        }
    }

    async fn send_batch(&mut self) -> Result<(), RunError> {
        let end = self.input.orders().min(self.sent + BATCH);
        while self.sent < end {
            self.orders.convert_and_send(&self.input.order(self.sent)).await?;
            self.sent += 1;
        }
        self.place.convert_and_send(&Place { input: self.input.name.clone(), sent: end }).await?;
        Ok(())
    }

    async fn take_place(&self) -> Result<Place, RunError> {
        let taken = with_session(self.session.clone(), self.place.receive_and_convert()).await?;
        taken.ok_or(RunError::NoPlace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> Entry {
        Entry { order_id: id.to_owned(), round: 1, ..Entry::default() }
    }

    fn input(ids: &[&str], rounds: u32) -> Input {
        Input::new(Path::new("orders.csv"), ids.iter().copied().map(entry).collect(), rounds)
    }

    #[test]
    fn rounds_follow_one_another() {
        let input = input(&["1", "2"], 3);
        let orders: Vec<_> = (0..input.orders()).map(|sent| input.order(sent)).collect();
        let orders: Vec<_> = orders.iter().map(|order| (order.order_id.as_str(), order.round)).collect();
        assert_eq!(orders, [("1", 1), ("2", 1), ("1", 2), ("2", 2), ("1", 3), ("2", 3)]);
    }

    #[test]
    fn another_input_is_told_by_what_is_in_it_and_not_by_its_name() {
        let name = input(&["1", "2"], 3).name;
        let moved = InputName { orders: "elsewhere.csv".to_owned(), ..name.clone() };
        assert!(name.is_same(&moved));
        for other in [input(&["1", "3"], 3), input(&["2", "1"], 3), input(&["1"], 3), input(&["1", "2"], 2)] {
            assert!(!name.is_same(&other.name), "{}", other.name);
        }
    }

    #[test]
    fn an_input_without_orders_is_at_its_end_at_once() {
        assert_eq!(input(&[], 5).orders(), 0);
    }
}
