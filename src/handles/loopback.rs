//! Which requests name this machine.
//!
//! A page on the web can make a browser ask for a name that the page's owner has pointed at
//! 127.0.0.1. The connection then comes from this machine, and only the name in the request tells
//! it from a request that a user of the machine has meant.

use http::HeaderMap;
use http::header::HOST;
use http::uri::Authority;
use std::net::IpAddr;

/// Whether a request names the loopback interface, by name or address.
pub(crate) fn is_named(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(authority) = Authority::try_from(host.as_bytes()) else {
        return false;
    };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_named;
    use http::HeaderMap;
    use http::header::HOST;

    #[test]
    fn only_names_and_addresses_of_the_loopback_interface_count() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:8080", true),
            ("127.0.0.1:8080", true),
            ("127.1.2.3", true),
            ("[::1]:8080", true),
            ("[::ffff:127.0.0.1]:8080", true),
            ("evil.example.com:8080", false),
            ("localhost.evil.example.com", false),
            ("127.0.0.1.evil.example.com", false),
            ("10.0.0.1:8080", false),
            ("0.0.0.0:8080", false),
            ("[::]:8080", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
            assert_eq!(is_named(&headers), expected, "{host}");
        }
        assert!(!is_named(&HeaderMap::new()));
        let mut twice = HeaderMap::new();
        twice.append(HOST, "localhost".parse().unwrap());
        twice.append(HOST, "evil.example.com".parse().unwrap());
        assert!(!is_named(&twice));
    }
}
