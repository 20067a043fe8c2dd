//! Why nobody can listen on an address, and what can be done about it.

use std::io;

/// What the system says when it does not let an address be listened on, in words that say what to do. The address is not
/// named.
#[must_use]
pub fn why_not_listening(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program has the port; port 0 takes a free one".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "the system does not permit it: ports below 1024 need root, or on Linux the capability \
             CAP_NET_BIND_SERVICE; expected a port from 1024 on"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => format!("this machine does not have the address: {error}"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_is_said_and_what_is_not_known_is_said_as_the_system_does() {
        let why = |kind: io::ErrorKind| why_not_listening(&io::Error::from(kind));
        assert_eq!(why(io::ErrorKind::AddrInUse), "another program has the port; port 0 takes a free one");
        let denied = why(io::ErrorKind::PermissionDenied);
        assert!(
            denied.contains("below 1024 need root") && denied.ends_with("a port from 1024 on"),
            "{denied}"
        );
        let other = io::Error::other("the cable is cut");
        assert_eq!(why_not_listening(&other), "the cable is cut");
    }
}
