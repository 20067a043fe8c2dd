//! What the disk itself can do: a sync after each small write, alone, at a fixed rate, and shared by a group.

mod raw;
mod skeleton;

pub(crate) use raw::{Raw, paced, wait_until};
pub(crate) use skeleton::{Variant, group_commit};
