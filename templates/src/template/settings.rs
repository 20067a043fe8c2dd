//! What can be set for a template.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::{ConnectionFactory, Destination, SendOptions};

use super::JmsTemplate;
use super::address::{Address, DestinationResolver, DynamicDestinations};
use super::error::TemplateError;
use super::sessions::Sessions;
use crate::converter::{JsonConverter, MessageConverter};

/// How long a template waits for a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveTimeout {
    /// As long as it takes.
    #[default]
    Indefinite,
    /// Not at all: takes a message that is there.
    NoWait,
    /// Up to this time. Zero does not wait.
    After(Duration),
}

impl From<Duration> for ReceiveTimeout {
    fn from(timeout: Duration) -> Self {
        Self::After(timeout)
    }
}

/// The settings that clones of a template share.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) default_destination: Option<Destination>,
    pub(super) receive_timeout: ReceiveTimeout,
    pub(super) converter: Arc<dyn MessageConverter>,
    pub(super) resolver: Arc<dyn DestinationResolver>,
    pub(super) send_options: SendOptions,
}

impl Settings {
    pub(super) fn resolve(&self, address: &Address) -> Result<Destination, TemplateError> {
        match address {
            Address::Destination(destination) => Ok(destination.clone()),
            Address::Name(name) => self
                .resolver
                .resolve(name)
                .map_err(|source| TemplateError::Destination { name: name.to_string(), source }),
        }
    }

    /// The destination at `address`, or else the default.
    pub(super) fn destination(
        &self,
        address: Option<&Address>,
        operation: &'static str,
    ) -> Result<Destination, TemplateError> {
        match (address, &self.default_destination) {
            (Some(address), _) => self.resolve(address),
            (None, Some(default)) => Ok(default.clone()),
            (None, None) => Err(TemplateError::NoDefaultDestination { operation }),
        }
    }
}

/// Builds a [`JmsTemplate`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before `build`"]
pub struct JmsTemplateBuilder {
    factory: ConnectionFactory,
    default_destination: Option<Address>,
    transacted: bool,
    sessions: usize,
    settings: Settings,
}

impl JmsTemplateBuilder {
    pub(super) fn new(factory: ConnectionFactory) -> Self {
        Self {
            factory,
            default_destination: None,
            transacted: false,
            sessions: 128,
            settings: Settings {
                default_destination: None,
                receive_timeout: ReceiveTimeout::default(),
                converter: Arc::new(JsonConverter::new()),
                resolver: Arc::new(DynamicDestinations),
                send_options: SendOptions::default(),
            },
        }
    }

    /// Where calls go that name no destination.
    pub fn default_destination(mut self, destination: impl Into<Address>) -> Self {
        self.default_destination = Some(destination.into());
        self
    }

    /// How long a receive waits; [`ReceiveTimeout::Indefinite`] unless it is set.
    pub fn receive_timeout(mut self, timeout: impl Into<ReceiveTimeout>) -> Self {
        self.settings.receive_timeout = timeout.into();
        self
    }

    /// What writes values as messages and reads them; a [`JsonConverter`] unless it is set.
    pub fn message_converter(mut self, converter: Arc<dyn MessageConverter>) -> Self {
        self.settings.converter = converter;
        self
    }

    /// What turns names into destinations; [`DynamicDestinations`] unless it is set.
    pub fn destination_resolver(mut self, resolver: Arc<dyn DestinationResolver>) -> Self {
        self.settings.resolver = resolver;
        self
    }

    /// Delivery mode, priority, time to live and deadline of sends that do not say otherwise.
    pub fn send_options(mut self, options: SendOptions) -> Self {
        self.settings.send_options = options;
        self
    }

    /// Makes each call outside a transacted handler a local transaction of its own, which is committed when the call
    /// succeeds and rolled back when it fails. This matters to [`JmsTemplate::execute`], where one call sends several
    /// messages. Off unless it is set.
    pub fn transacted(mut self, transacted: bool) -> Self {
        self.transacted = transacted;
        self
    }

    /// How many sends may be under way at once, each on a session of its own, at least 1; further ones wait their
    /// turn. As many sessions are kept for the next calls. 128 unless it is set.
    pub fn sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions.max(1);
        self
    }

    /// The template. It connects at its first call.
    ///
    /// # Errors
    /// [`TemplateError::Destination`] when the default destination cannot be resolved.
    pub fn build(self) -> Result<JmsTemplate, TemplateError> {
        let mut settings = self.settings;
        settings.default_destination =
            self.default_destination.map(|address| settings.resolve(&address)).transpose()?;
        let sessions = Sessions::new(self.factory, self.transacted, self.sessions);
        Ok(JmsTemplate::new(sessions, settings))
    }
}
