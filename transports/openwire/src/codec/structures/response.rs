//! Answers (OpenWire, section 5).

use super::Throwable;
use crate::codec::loose::describe;
use crate::codec::structure::Structure;

describe! {
    /// It is done.
    command 30 Response {
        /// The number of the command that this answers.
        correlation_id: i32,
    }

    /// It failed.
    command 31 ExceptionResponse {
        /// The number of the command that this answers.
        correlation_id: i32,
        /// Why.
        exception: Option<Throwable>,
    }

    /// It is done, with a structure.
    command 32 DataResponse {
        /// The number of the command that this answers.
        correlation_id: i32,
        /// The structure.
        data: Option<Structure>,
    }

    /// It is done, with structures.
    command 33 DataArrayResponse {
        /// The number of the command that this answers.
        correlation_id: i32,
        /// The structures.
        data: Option<Vec<Structure>>,
    }

    /// It is done, with a number.
    command 34 IntegerResponse {
        /// The number of the command that this answers.
        correlation_id: i32,
        /// The number.
        result: i32,
    }
}
