//! What clients ask for besides sending, receiving and transactions, and what they get wrong.

use corriere_broker::machine::ConnectionKey;
use corriere_core::provider::{AckKind, Command, Credit};
use corriere_core::{Destination, DestinationKind, ProducerId, SessionId, SubscriptionId, TransactionId};
use corriere_tests::model::{Judgement, Temporary};

use super::{Letter, SessionKey, Wishes, World, queue};
use crate::operations::{Look, Misuse};

impl World {
    pub(crate) fn create_temporary(&mut self, connection: ConnectionKey, is_topic: bool) -> Judgement {
        let kind = if is_topic { DestinationKind::Topic } else { DestinationKind::Queue };
        let name = format!("ID:{}:{}", connection.0, self.number());
        let destination = Destination::temporary(kind, &name).expect("a name");
        self.temporaries.push(destination.clone());
        self.command(connection, Command::CreateTemporary { destination })
    }

    pub(crate) fn browse(&mut self, session: SessionKey, queue: &Destination) -> Judgement {
        let (subscription, destination) = (SubscriptionId(self.number()), queue.clone());
        let browse = Command::Browse { subscription, session: session.session, destination, selector: None };
        self.command(session.connection, browse)
    }

    pub(crate) fn look(
        &mut self,
        session: SessionKey,
        subscription: SubscriptionId,
        look: Look,
    ) -> Judgement {
        let (number, last_handed_over) = (u64::MAX, u64::MAX);
        let command = match look {
            Look::Grant(credit) => Command::Grant { subscription, credit: u32::from(credit) },
            Look::Drain => Command::Drain { subscription },
            Look::Acknowledge => {
                return self.acknowledge(session, subscription, 1..=u64::MAX, AckKind::Standard, true);
            }
            Look::HandOver => Command::HandedOver { subscription, number, mark: None },
            Look::Close => Command::CloseSubscription { subscription, last_handed_over },
        };
        self.command(session.connection, command)
    }

    /// Names what is not there.
    pub(crate) fn misuse(&mut self, session: SessionKey, misuse: Misuse) -> Judgement {
        let (nobody, producer) = (SubscriptionId(self.number()), ProducerId(self.number()));
        let command = match misuse {
            Misuse::AcknowledgesWhatIsNot => {
                return self.acknowledge(session, nobody, 1..=u64::MAX, AckKind::Standard, true);
            }
            Misuse::SendsByNobody => {
                let own = std::mem::replace(&mut self.session(session).producer, producer);
                let sent = self.send(session, &queue("a"), Letter { transacted: true, ..Letter::default() });
                self.session(session).producer = own;
                return sent.map(drop);
            }
            Misuse::CommitsWhatIsNot => {
                Command::Commit { transaction: TransactionId::Local(self.number()), one_phase: true }
            }
            Misuse::CommitsUnprepared => {
                Command::Commit { transaction: self.transaction(session)?, one_phase: false }
            }
            Misuse::SubscribesInNoSession => {
                let nowhere = SessionKey { session: SessionId(self.number()), ..session };
                return self.subscribe(nowhere, &queue("a"), Credit::Explicit, Wishes::default()).map(drop);
            }
            Misuse::GrantsToNobody => Command::Grant { subscription: nobody, credit: 1 },
            Misuse::NamesWhatIsNotItsOwn => {
                let name = format!("ID:{}1:1", session.connection.0);
                let destination = Destination::temporary(DestinationKind::Queue, &name).expect("a name");
                Command::CreateTemporary { destination }
            }
            Misuse::NamesWhatIsThere => {
                let own = |temporary: &&Temporary| temporary.owner == session.connection;
                let Some(there) = self.model.temporaries().iter().find(own) else { return Ok(()) };
                Command::CreateTemporary { destination: there.destination.clone() }
            }
        };
        self.command(session.connection, command)
    }
}
