//! What a peer speaks that does not speak OpenWire, by its first bytes.

/// How each request or response of HTTP may begin, to the fourth byte, as no more may have come.
const HTTP: &[&[u8]] = &[b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"TRAC", b"HTTP"];

/// The protocol that these bytes begin, where it is one of those that brokers are mistaken for.
pub(super) fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    // A method of HTTP, and the first frame of STOMP, which ends its line.
    if bytes.starts_with(b"CONNECT ") || HTTP.iter().any(|start| bytes.starts_with(start)) {
        return Some("HTTP");
    }
    if bytes.starts_with(b"CONN") || bytes.starts_with(b"STOM") {
        return Some("STOMP");
    }
    if bytes.starts_with(b"AMQP") {
        return Some("AMQP");
    }
    match bytes {
        // A record of a handshake, or an alert, of any version.
        [0x15 | 0x16, 0x03, ..] => Some("TLS (`ssl://`)"),
        // CONNECT, whose length is one to four bytes, and the name of the protocol, which was another before version 3.1.1.
        [0x10, rest @ ..] if names_mqtt(rest) => Some("MQTT"),
        _ => None,
    }
}

fn names_mqtt(packet: &[u8]) -> bool {
    let head = packet.get(..12).unwrap_or(packet);
    [&b"MQTT"[..], b"MQIsdp"].iter().any(|name| head.windows(name.len()).any(|window| window == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_known_by_its_first_bytes() {
        for (bytes, protocol) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], Some("HTTP")),
            (b"CONNECT host:61616 HTTP/1.1\r\n", Some("HTTP")),
            (b"HTTP/1.1 400 Bad Request\r\n", Some("HTTP")),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", Some("TLS (`ssl://`)")),
            (b"\x15\x03\x01\x00\x02\x02\x46", Some("TLS (`ssl://`)")),
            (b"CONNECT\naccept-version:1.2\n\n\0", Some("STOMP")),
            (b"STOMP\r\naccept-version:1.2\r\n\r\n\0", Some("STOMP")),
            (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", Some("MQTT")),
            (b"\x10\x80\x01\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x00", Some("MQTT")),
            (b"AMQP\x00\x01\x00\x00", Some("AMQP")),
            (b"AMQP\x03\x01\x00\x00", Some("AMQP")),
            (b"\x10\x00\x00\x00\x01", None),
            (b"\x00\x00\x01\x00\x01ActiveMQ", None),
            (b"SSH-2.0-OpenSSH_9.2\r\n", None),
            (b"", None),
        ] {
            assert_eq!(looks_like(bytes), protocol, "{bytes:?}");
        }
    }
}
