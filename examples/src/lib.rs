//! Shared by nothing yet.
