//! The user and password in front of a host, as in `tcp://user:password@host:1`, which no URL of ours takes.

/// The URL, without its options and with `***` where each user info stands in it; `None` for one that has none. It is looked
/// for in URLs that are malformed too, as what is wrong with one is shown with it. What it can hide is hidden: all of a part
/// up to its last `@`, as a password may hold what ends a host.
#[must_use]
pub fn without_user_info(url: &str) -> Option<String> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    // The name of an option has no `@`: that was the question mark of a password.
    let is_cut = query.split(['=', '&']).next().is_some_and(|name| name.contains('@'));
    let address = if is_cut { url } else { address };
    if !address.contains('@') {
        return None;
    }
    let shown: Vec<_> = address.split("://").enumerate().map(hidden).collect();
    Some(shown.join("://"))
}

/// A part of a URL between two `://`. The first has a scheme, and no host unless the slashes are missing.
fn hidden((index, part): (usize, &str)) -> String {
    let Some((user_info, rest)) = part.rsplit_once('@') else { return part.to_owned() };
    let scheme = user_info.split_once(':').filter(|_| index == 0).map(|(scheme, _)| format!("{scheme}:"));
    // Behind a question mark there are options.
    let rest = rest.split('?').next().unwrap_or_default();
    format!("{}***@{rest}", scheme.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_hidden_wherever_it_stands() {
        for (url, shown) in [
            ("tcp://u:geheim@h:1", "tcp://***@h:1"),
            ("tcp://geheim@h:1?jms.foo=1", "tcp://***@h:1"),
            ("vm://u:geheim@local", "vm://***@local"),
            ("t_cp://u:geheim@h:1", "t_cp://***@h:1"),
            ("://u:geheim@h:1", "://***@h:1"),
            ("tcp:u:geheim@h:1", "tcp:***@h:1"),
            ("geheim@h:1", "***@h:1"),
            ("tcp://u:ge@h/e?i:m@h:1", "tcp://***@h:1"),
            ("tcp://u:ge?heim@h:1?jms.foo=1", "tcp://***@h:1"),
            ("failover:(tcp://u:geheim@h1:1,tcp://h2:1)", "failover:(tcp://***@h1:1,tcp://h2:1)"),
            ("failover:(tcp://h1:1,tcp://u:geheim@h2:1)?x=1", "failover:(tcp://h1:1,tcp://***@h2:1)"),
        ] {
            assert_eq!(without_user_info(url).as_deref(), Some(shown), "{url}");
        }
    }

    #[test]
    fn an_at_sign_among_the_options_is_none() {
        for url in ["tcp://h:1?jms.userName=a@b", "vm://local", "", "?", "tcp://h:1?a=1&jms.password=@"] {
            assert_eq!(without_user_info(url), None, "{url}");
        }
    }
}
