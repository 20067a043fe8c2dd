//! Queues and topics (OpenWire, section 5, types 100 to 103).

use std::fmt;
use std::sync::Arc;

use corriere_core::DestinationKind;

use crate::codec::error::{DecodeError, EncodeError};
use crate::codec::loose::{Field, Nested, Reader, Writer};

/// A queue or a topic, lasting or temporary, as the wire names it.
///
/// Other than [`corriere_core::Destination`] it may be several in one, or a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// What it is; the structure's type says so.
    pub kind: DestinationKind,
    /// Its name, or several with commas between them.
    pub physical_name: Arc<str>,
}

/// The first of the types; the others follow it in this order.
const FIRST: u8 = 100;

const KINDS: [DestinationKind; 4] = [
    DestinationKind::Queue,
    DestinationKind::Topic,
    DestinationKind::TemporaryQueue,
    DestinationKind::TemporaryTopic,
];

impl Destination {
    /// The destination of this kind and name.
    #[must_use]
    pub fn new(kind: DestinationKind, physical_name: &str) -> Self {
        Self { kind, physical_name: physical_name.into() }
    }

    /// The destinations that this is made of: usually itself. One of several may say its own kind, as in
    /// `orders,topic://prices`; empty names are passed over.
    pub fn elements(&self) -> impl Iterator<Item = Self> {
        self.physical_name.split(',').map(str::trim).filter(|name| !name.is_empty()).map(|name| {
            let (kind, name) = DestinationKind::split(name).unwrap_or((self.kind, name));
            Self::new(kind, name)
        })
    }

    /// The connection that a temporary destination belongs to, which its name begins with.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        let (owner, _) = self.physical_name.rsplit_once(':')?;
        self.kind.is_temporary().then_some(owner)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.kind.scheme(), self.physical_name)
    }
}

impl Nested for Destination {
    const NAME: &'static str = "Destination";

    fn accepts(data_type: u8) -> bool {
        kind_of(data_type).is_some()
    }

    fn read_as(data_type: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = kind_of(data_type).ok_or_else(|| reader.fault(1, Self::refusal(data_type)))?;
        let physical_name =
            Field::read(reader).map_err(|error: DecodeError| error.within("physical_name"))?;
        Ok(Self { kind, physical_name })
    }

    fn data_type(&self) -> u8 {
        FIRST
            + match self.kind {
                DestinationKind::Queue => 0,
                DestinationKind::Topic => 1,
                DestinationKind::TemporaryQueue => 2,
                DestinationKind::TemporaryTopic => 3,
            }
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.physical_name.write(writer).map_err(|error| error.within("physical_name"))
    }

    #[cfg(test)]
    fn sample_any(source: &mut crate::codec::sample::Source) -> Self {
        Self { kind: KINDS[source.below(KINDS.len())], physical_name: source.text() }
    }
}

fn kind_of(data_type: u8) -> Option<DestinationKind> {
    KINDS.get(usize::from(data_type.checked_sub(FIRST)?)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_type() {
        for (index, kind) in KINDS.into_iter().enumerate() {
            let destination = Destination::new(kind, "a");
            assert_eq!(usize::from(destination.data_type()), 100 + index);
            assert_eq!(kind_of(destination.data_type()), Some(kind));
        }
        assert_eq!((kind_of(99), kind_of(104), kind_of(0)), (None, None, None));
    }

    #[test]
    fn several_in_one_are_taken_apart_and_each_may_say_its_kind() {
        let advisories = Destination::new(DestinationKind::Topic, "A.TempQueue, A.TempTopic,,queue://orders");
        let elements: Vec<_> = advisories.elements().map(|element| element.to_string()).collect();
        assert_eq!(elements, ["topic://A.TempQueue", "topic://A.TempTopic", "queue://orders"]);
    }

    #[test]
    fn a_temporary_destination_names_its_owner() {
        let temporary = Destination::new(DestinationKind::TemporaryQueue, "ID:host-1-2-3:1:7");
        assert_eq!(temporary.owner(), Some("ID:host-1-2-3:1"));
        assert_eq!(Destination::new(DestinationKind::Queue, "ID:host-1-2-3:1:7").owner(), None);
    }
}
