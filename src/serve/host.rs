//! Which names of this machine a request may use.
//!
//! A page on the web can have a browser ask a name that its owner has pointed at 127.0.0.1. The
//! connection then comes from this machine, and only the name in the request tells it from one that
//! a user of the machine has meant.

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

const REFUSED: &str = "this page is for this machine alone: ask for it as http://localhost:PORT or \
                       http://127.0.0.1:PORT\n";

/// Answers only what is asked for by a name or an address of the loopback interface.
pub(super) async fn must_be_loopback(request: Request, next: Next) -> Response {
    if is_loopback(request.headers()) {
        next.run(request).await
    } else {
        (StatusCode::MISDIRECTED_REQUEST, REFUSED).into_response()
    }
}

fn is_loopback(headers: &HeaderMap) -> bool {
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
    use super::is_loopback;
    use axum::http::HeaderMap;
    use axum::http::header::HOST;

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
            assert_eq!(is_loopback(&headers), expected, "{host}");
        }
        assert!(!is_loopback(&HeaderMap::new()));
        let mut twice = HeaderMap::new();
        twice.append(HOST, "localhost".parse().unwrap());
        twice.append(HOST, "evil.example.com".parse().unwrap());
        assert!(!is_loopback(&twice));
    }
}
