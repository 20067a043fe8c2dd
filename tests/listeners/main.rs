//! Listeners and their containers, against the embedded broker.
