//! The kinds of fields (OpenWire, section 3).

use std::sync::Arc;

use bytes::Bytes;

use super::{Nested, Reader, Writer};
use crate::codec::error::{DecodeError, DecodeFault, EncodeError};

/// What a field holds, and how it stands on the wire.
pub(crate) trait Field: Sized {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Any value that this field can hold.
    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self;
}

macro_rules! plain {
    ($($kind:ty, $method:ident, $sample:ident;)*) => {$(
        impl Field for $kind {
            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                reader.$method()
            }

            fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
                writer.$method(*self);
                Ok(())
            }

            #[cfg(test)]
            fn sample(source: &mut crate::codec::sample::Source) -> Self {
                source.$sample()
            }
        }
    )*};
}

plain! {
    bool, flag, flag;
    i8, i8, i8;
    i32, i32, i32;
    i64, i64, i64;
}

/// A text that may be null.
impl Field for Option<Arc<str>> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if reader.flag()? { reader.short_text().map(Some) } else { Ok(None) }
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.flag(self.is_some());
        self.as_ref().map_or(Ok(()), |text| writer.short_text(text))
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        source.flag().then(|| source.text())
    }
}

/// A text that may not be null.
impl Field for Arc<str> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Option::<Self>::read(reader)?.ok_or_else(|| reader.fault(1, DecodeFault::Null))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.flag(true);
        writer.short_text(self)
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        source.text()
    }
}

/// A byte array, or a part of one, that may be null.
impl Field for Option<Bytes> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if !reader.flag()? {
            return Ok(None);
        }
        let length = reader.length(1)?;
        reader.shared(length).map(Some)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.flag(self.is_some());
        let Some(bytes) = self else {
            return Ok(());
        };
        writer.length(bytes.len())?;
        writer.bytes(bytes);
        Ok(())
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        source.flag().then(|| source.bytes())
    }
}

/// A structure that may not be null.
impl<T: Nested> Field for T {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Option::<Self>::read(reader)?.ok_or_else(|| reader.fault(1, DecodeFault::Null))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.flag(true);
        writer.u8(self.data_type());
        writer.deeper(|writer| self.write_fields(writer))
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        source.deeper(T::sample_any)
    }
}

/// A structure that may be null. Fields that a cache would hold are the same without one.
impl<T: Nested> Field for Option<T> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if !reader.flag()? {
            return Ok(None);
        }
        let data_type = reader.u8()?;
        if !T::accepts(data_type) {
            return Err(reader.fault(1, T::refusal(data_type)));
        }
        reader.deeper(|reader| T::read_as(data_type, reader)).map(Some)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        if let Some(structure) = self {
            return structure.write(writer);
        }
        writer.flag(false);
        Ok(())
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        (source.flag() && source.may_go_deeper()).then(|| T::sample(source))
    }
}

/// An array of structures, none of which may be null.
impl<T: Nested> Field for Option<Vec<T>> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if !reader.flag()? {
            return Ok(None);
        }
        // A flag and a type are the least that an element takes. It grows as they come, as they are larger here.
        let count = reader.short_length(2)?;
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(T::read(reader)?);
        }
        Ok(Some(elements))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.flag(self.is_some());
        let Some(elements) = self else {
            return Ok(());
        };
        writer.short_length(elements.len())?;
        elements.iter().try_for_each(|element| element.write(writer))
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        let some = source.flag() && source.may_go_deeper();
        some.then(|| (0..source.below(3)).map(|_| T::sample(source)).collect())
    }
}
