use super::{Client, Fixture, bind_of, of_nodes};
use crate::extender::connections::INTRODUCTION_TIMEOUT;
use crate::extender::{Extender, ExtenderFiles};
use crate::handles::Handles;
use base64::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const TOKEN: &str = "a-token-that-nobody-guesses";
const LONG: Duration = Duration::from_secs(60);

/// A certificate and its private key, in PEM.
struct Identity {
    certificate: String,
    key: String,
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, usage: ExtendedKeyUsagePurpose) -> Identity {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    fn server(&self) -> Identity {
        self.sign(ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn client(&self) -> Identity {
        self.sign(ExtendedKeyUsagePurpose::ClientAuth)
    }
}

/// Files in a folder of their own.
struct Files {
    folder: TempDir,
    servers: Authority,
    clients: Authority,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
            servers: Authority::new(),
            clients: Authority::new(),
        };
        files.renew();
        files.write("clients.crt", &files.clients.0.pem());
        files.write("token", &format!("{TOKEN}\n"));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn renew(&self) {
        let server = self.servers.server();
        self.write("tls.crt", &server.certificate);
        self.write("tls.key", &server.key);
    }

    fn all(&self) -> ExtenderFiles {
        ExtenderFiles {
            certificate: Some((self.path("tls.crt"), self.path("tls.key"))),
            client_authority: Some(self.path("clients.crt")),
            token: Some(self.path("token")),
        }
    }

    /// A connection that shows this certificate, or none.
    async fn connect(
        &self,
        fixture: &Fixture,
        client: Option<&Identity>,
    ) -> std::io::Result<Client> {
        let mut roots = RootCertStore::empty();
        let root = self.servers.0.pem();
        roots
            .add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(fixture.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        Ok(Client::on(stream).await)
    }

    /// The status of a request with this certificate and this header; `None`: the connection is
    /// refused.
    async fn status(
        &self,
        fixture: &Fixture,
        client: Option<&Identity>,
        authorization: Option<&str>,
    ) -> Option<u16> {
        let mut client = self.connect(fixture, client).await.ok()?;
        client.authorization = authorization.map(str::to_owned);
        let body = bind_of("n").to_string();
        client
            .send("/bind", body)
            .await
            .ok()
            .map(|(status, _)| status)
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// What Go sends for a user and a password in a URL.
fn basic(user: &str, token: &str) -> String {
    format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{token}"))
    )
}

#[tokio::test]
async fn a_token_is_shown_as_bearer_or_as_password_and_nothing_else_is_let_in() {
    let files = Files::new();
    let with_token = ExtenderFiles {
        client_authority: None,
        ..files.all()
    };
    let fixture = Fixture::start(with_token, LONG).await;
    for right in [
        bearer(TOKEN),
        basic("any", TOKEN),
        format!("bearer  {TOKEN}"),
    ] {
        assert_eq!(
            files.status(&fixture, None, Some(&right)).await,
            Some(200),
            "{right}"
        );
    }
    let wrong = [
        bearer(""),
        bearer(&TOKEN[1..]),
        bearer(&format!("{TOKEN}x")),
        basic(TOKEN, ""),
        basic("any", "another-token-of-any-length"),
        format!("Basic {TOKEN}"),
        format!("Digest {TOKEN}"),
        TOKEN.to_owned(),
        "Basic".to_owned(),
    ];
    for wrong in wrong {
        assert_eq!(
            files.status(&fixture, None, Some(&wrong)).await,
            Some(401),
            "{wrong}"
        );
    }
    assert_eq!(files.status(&fixture, None, None).await, Some(401));
    // A certificate of whomever is not asked for, and counts for nothing.
    let client = files.clients.client();
    assert_eq!(files.status(&fixture, Some(&client), None).await, Some(401));
    assert_eq!(fixture.rules.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn of_a_stranger_nothing_but_the_head_is_read() {
    let files = Files::new();
    let plain = ExtenderFiles {
        token: Some(files.path("token")),
        ..ExtenderFiles::default()
    };
    let fixture = Fixture::start(plain, LONG).await;
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    let head = "POST /filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                Content-Length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let began = Instant::now();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    // Who says nothing at all is not waited for either.
    assert!(began.elapsed() < INTRODUCTION_TIMEOUT);
    let mut silent = TcpStream::connect(fixture.address).await.unwrap();
    assert_eq!(silent.read(&mut [0]).await.unwrap(), 0);
    assert!(began.elapsed() < 2 * INTRODUCTION_TIMEOUT);
}

#[tokio::test]
async fn only_certificates_of_the_authority_are_let_in() {
    let files = Files::new();
    let certified = ExtenderFiles {
        token: None,
        ..files.all()
    };
    let fixture = Fixture::start(certified, LONG).await;
    let client = files.clients.client();
    assert_eq!(files.status(&fixture, Some(&client), None).await, Some(200));
    let stranger = Authority::new().client();
    assert_eq!(files.status(&fixture, Some(&stranger), None).await, None);
    // A certificate for servers says nothing about a client.
    let server = files.clients.server();
    assert_eq!(files.status(&fixture, Some(&server), None).await, None);
    assert_eq!(files.status(&fixture, None, None).await, None);
    assert_eq!(
        files.status(&fixture, None, Some(&bearer(TOKEN))).await,
        None
    );
    assert_eq!(fixture.rules.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn with_an_authority_and_a_token_either_is_enough() {
    let files = Files::new();
    let fixture = Fixture::start(files.all(), LONG).await;
    let client = files.clients.client();
    assert_eq!(files.status(&fixture, Some(&client), None).await, Some(200));
    assert_eq!(
        files.status(&fixture, None, Some(&bearer(TOKEN))).await,
        Some(200)
    );
    assert_eq!(files.status(&fixture, None, None).await, Some(401));
    let stranger = Authority::new().client();
    let token = bearer(TOKEN);
    assert_eq!(
        files.status(&fixture, Some(&stranger), Some(&token)).await,
        None
    );
}

#[tokio::test]
async fn several_requests_go_over_one_encrypted_connection() {
    let files = Files::new();
    let fixture = Fixture::start(files.all(), LONG).await;
    let client = files.clients.client();
    let mut client = files.connect(&fixture, Some(&client)).await.unwrap();
    for _ in 0..20 {
        let filtered = client.ask("/filter", &of_nodes(&["free-1"])).await;
        assert_eq!(filtered["NodeNames"][0], "free-1");
        assert_eq!(client.ask("/bind", &bind_of("free-1")).await["Error"], "");
    }
}

#[tokio::test]
async fn renewed_files_count_for_new_connections_and_broken_ones_do_not() {
    let mut files = Files::new();
    let fixture = Fixture::start(files.all(), LONG).await;
    let old = bearer(TOKEN);
    assert_eq!(files.status(&fixture, None, Some(&old)).await, Some(200));
    let new = bearer("another-token-that-nobody-guesses");
    files.write("token", &new["Bearer ".len()..]);
    assert_eq!(files.status(&fixture, None, Some(&old)).await, Some(401));
    assert_eq!(files.status(&fixture, None, Some(&new)).await, Some(200));
    for (name, text) in [
        ("token", "short"),
        ("token", "a token with spaces in it"),
        ("tls.crt", ""),
        ("tls.key", "nonsense"),
        (
            "clients.crt",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
    ] {
        let before = std::fs::read_to_string(files.path(name)).unwrap();
        files.write(name, text);
        assert_eq!(
            files.status(&fixture, None, Some(&new)).await,
            Some(200),
            "{name}: {text}"
        );
        files.write(name, &before);
    }
    std::fs::remove_file(files.path("token")).unwrap();
    assert_eq!(files.status(&fixture, None, Some(&new)).await, Some(200));
    // A certificate of a new authority, which the old one does not vouch for.
    files.servers = Authority::new();
    assert_eq!(files.status(&fixture, None, Some(&new)).await, None);
    files.write("token", TOKEN);
    files.renew();
    assert_eq!(files.status(&fixture, None, Some(&old)).await, Some(200));
}

#[test]
fn a_file_that_cannot_be_used_is_named_at_the_start() {
    let files = Files::new();
    let other = files.servers.server();
    files.write("other.key", &other.key);
    files.write("empty", "");
    let said = |change: &dyn Fn(&mut ExtenderFiles)| {
        let mut all = files.all();
        change(&mut all);
        let error = Extender::new(all, Handles::new(String::new()))
            .err()
            .unwrap();
        error.to_string()
    };
    let path = |name: &str| files.path(name);
    let missing = said(&|all| all.token = Some(path("missing")));
    assert!(missing.contains("missing: No such file"), "{missing}");
    let mismatch = said(&|all| all.certificate = Some((path("tls.crt"), path("other.key"))));
    assert!(
        mismatch.contains("tls.crt: ") && mismatch.contains("other.key"),
        "{mismatch}"
    );
    let empty = said(&|all| all.client_authority = Some(path("empty")));
    assert!(
        empty.ends_with("empty: there is no certificate in PEM in it"),
        "{empty}"
    );
    let key = said(&|all| all.certificate = Some((path("tls.crt"), path("empty"))));
    assert!(
        key.ends_with("empty: there is no private key in PEM in it"),
        "{key}"
    );
    let token = said(&|all| all.token = Some(path("empty")));
    assert!(
        token.ends_with("empty: the token must have at least 16 characters"),
        "{token}"
    );
    let folder = said(&|all| all.token = Some(Path::new("/").to_owned()));
    assert!(folder.contains("cannot use /: "), "{folder}");
}
