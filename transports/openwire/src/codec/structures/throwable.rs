//! Exceptions (OpenWire, section 3): names and texts, never types.

use std::sync::Arc;

use super::Text;
use crate::codec::error::{DecodeError, DecodeFault, EncodeError, EncodeFault};
use crate::codec::loose::{Field, Fields, Reader, Writer, describe};

/// How many causes may follow each other.
const MAXIMUM_CAUSES: usize = 64;

/// What stands before the code of an XA error at the end of its message.
const XA_ERROR_CODE: &str = "xaErrorCode:";

/// A Java exception.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throwable {
    /// The name of its class, as text.
    pub class: Arc<str>,
    /// What it says.
    pub message: Text,
    /// Where it was thrown, innermost first; on the wire only where both sides want stacks.
    pub stack_trace: Vec<StackTraceElement>,
    /// What caused it; on the wire only where both sides want stacks.
    pub cause: Option<Box<Throwable>>,
}

describe! {
    /// A place in a Java program.
    fields StackTraceElement {
        /// The class.
        class: Text,
        /// The method.
        method: Text,
        /// The file.
        file: Text,
        /// The line; negative where it is not known.
        line: i32,
    }
}

macro_rules! java_exceptions {
    ($($(#[$meta:meta])* $name:ident = $class:literal,)*) => {
        /// The classes of exceptions that are sent: those that every client knows. A client of Jakarta Messaging reads
        /// `javax.jms` as `jakarta.jms`; an older one knows only the former.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum JavaException {
            $($(#[$meta])* #[doc = concat!("\n\n`", $class, "`")] $name,)*
        }

        impl JavaException {
            /// The name of the class.
            #[must_use]
            pub fn class(self) -> &'static str {
                match self {
                    $(Self::$name => $class,)*
                }
            }

            /// The known class of this name.
            #[must_use]
            pub fn of_class(class: &str) -> Option<Self> {
                // Nothing but the name of the package differs.
                let old = class.strip_prefix("jakarta.").map(|rest| format!("javax.{rest}"));
                match old.as_deref().unwrap_or(class) {
                    $($class => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

java_exceptions! {
    /// Any other failure.
    Jms = "javax.jms.JMSException",
    /// Wrong user or password, or not allowed.
    Security = "java.lang.SecurityException",
    /// Wrong user or password, or not allowed, as JMS says it.
    JmsSecurity = "javax.jms.JMSSecurityException",
    /// Not in this state.
    IllegalState = "javax.jms.IllegalStateException",
    /// The client id is taken or refused.
    InvalidClientId = "javax.jms.InvalidClientIDException",
    /// The destination is unknown or refused.
    InvalidDestination = "javax.jms.InvalidDestinationException",
    /// The selector cannot be read.
    InvalidSelector = "javax.jms.InvalidSelectorException",
    /// A message cannot be read.
    MessageFormat = "javax.jms.MessageFormatException",
    /// No memory or no disk.
    ResourceAllocation = "javax.jms.ResourceAllocationException",
    /// The transaction was rolled back instead.
    TransactionRolledBack = "javax.jms.TransactionRolledBackException",
    /// The connection failed.
    ConnectionFailed = "org.apache.activemq.ConnectionFailedException",
    /// What was sent cannot be read.
    Io = "java.io.IOException",
    /// A distributed transaction failed; see [`Throwable::xa_error`].
    Xa = "javax.transaction.xa.XAException",
}

impl Throwable {
    /// An exception of a known class.
    #[must_use]
    pub fn new(exception: JavaException, message: impl Into<Arc<str>>) -> Self {
        Self { class: exception.class().into(), message: Some(message.into()), ..Self::default() }
    }

    /// The failure of a distributed transaction with its code, which a client reads back from the message's end.
    #[must_use]
    pub fn xa_error(code: i32, message: &str) -> Self {
        Self::new(JavaException::Xa, format!("{message} {XA_ERROR_CODE}{code}"))
    }

    /// Its class, where that is a known one.
    #[must_use]
    pub fn exception(&self) -> Option<JavaException> {
        JavaException::of_class(&self.class)
    }

    /// The code at the end of the message of an XA error.
    #[must_use]
    pub fn xa_error_code(&self) -> Option<i32> {
        self.message.as_deref()?.rsplit_once(XA_ERROR_CODE)?.1.parse().ok()
    }
}

impl Field for Option<Throwable> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut chain = Vec::new();
        while reader.flag()? {
            if chain.len() > MAXIMUM_CAUSES {
                return Err(reader.fault(1, DecodeFault::TooDeep { maximum: MAXIMUM_CAUSES }));
            }
            chain.push(read_one(reader)?);
            if !reader.stack_traces() {
                break;
            }
        }
        let innermost_first = chain.into_iter().rev();
        Ok(innermost_first
            .fold(None, |cause, throwable| Some(Throwable { cause: cause.map(Box::new), ..throwable })))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut next = self.as_ref();
        for _ in 0..=MAXIMUM_CAUSES {
            writer.flag(next.is_some());
            let Some(throwable) = next else {
                return Ok(());
            };
            write_one(throwable, writer)?;
            if !writer.stack_traces() {
                return Ok(());
            }
            next = throwable.cause.as_deref();
        }
        if next.is_some() {
            return Err(EncodeError::new(EncodeFault::TooDeep { maximum: MAXIMUM_CAUSES }));
        }
        writer.flag(false);
        Ok(())
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        let mut throwable = None;
        for _ in 0..source.below(if source.stack_traces() { 4 } else { 2 }) {
            let stack = if source.stack_traces() { source.below(3) } else { 0 };
            throwable = Some(Throwable {
                class: source.text(),
                message: Field::sample(source),
                stack_trace: (0..stack).map(|_| Fields::sample_all(source)).collect(),
                cause: throwable.map(Box::new),
            });
        }
        throwable
    }
}

fn read_one(reader: &mut Reader<'_>) -> Result<Throwable, DecodeError> {
    let class = Field::read(reader).map_err(|error: DecodeError| error.within("class"))?;
    let message = Field::read(reader).map_err(|error: DecodeError| error.within("message"))?;
    let mut stack_trace = Vec::new();
    if reader.stack_traces() {
        /// Three texts that are null, and a number.
        const LEAST: usize = 7;
        for _ in 0..reader.short_length(LEAST)? {
            let element = StackTraceElement::read_all(reader);
            stack_trace.push(element.map_err(|error| error.within("stack_trace"))?);
        }
    }
    Ok(Throwable { class, message, stack_trace, cause: None })
}

fn write_one(throwable: &Throwable, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    throwable.class.write(writer).map_err(|error| error.within("class"))?;
    throwable.message.write(writer).map_err(|error| error.within("message"))?;
    if writer.stack_traces() {
        writer.short_length(throwable.stack_trace.len())?;
        throwable.stack_trace.iter().try_for_each(|element| element.write_all(writer))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_xa_error_comes_back_from_its_message() {
        let error = Throwable::xa_error(-7, "the resource manager is gone");
        assert_eq!(error.message.as_deref(), Some("the resource manager is gone xaErrorCode:-7"));
        assert_eq!((error.xa_error_code(), error.exception()), (Some(-7), Some(JavaException::Xa)));
        assert_eq!(Throwable::new(JavaException::Jms, "no").xa_error_code(), None);
    }

    #[test]
    fn a_class_is_known_by_its_old_and_its_new_name_and_else_it_is_text() {
        for class in ["javax.jms.InvalidSelectorException", "jakarta.jms.InvalidSelectorException"] {
            assert_eq!(JavaException::of_class(class), Some(JavaException::InvalidSelector));
        }
        assert_eq!(JavaException::of_class("javax.script.ScriptEngineManager"), None);
    }
}
