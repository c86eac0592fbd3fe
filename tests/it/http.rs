//! The pages that a scheduler serves.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The status and the body of a page; 0 and the error if nobody answers.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    match answer(address, path).await {
        Ok(answer) => {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            (status, body.to_owned())
        }
        Err(error) => (0, error.to_string()),
    }
}

async fn answer(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// That a page is OpenMetrics as far as a scraper is strict about it: every sample belongs to a
/// family that was declared before, has a number, and the page has an end.
pub(crate) fn check_open_metrics(page: &str) {
    let body = page.strip_suffix("# EOF\n");
    let body = body.unwrap_or_else(|| panic!("no end: {page}"));
    let mut family = String::new();
    for line in body.lines() {
        if let Some(declaration) = line.strip_prefix("# TYPE ") {
            family = declaration.split(' ').next().unwrap().to_owned();
        }
        if line.starts_with('#') {
            continue;
        }
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(name.starts_with(&family), "{line} is not of {family}");
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}
