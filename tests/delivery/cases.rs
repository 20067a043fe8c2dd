//! Cases from the field, played at the machine.
