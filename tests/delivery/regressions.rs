//! Histories that once broke a rule, as short as they got.
