//! The credentials of clients: a certificate of the authority, or the token.

use super::{ExtenderFiles, UnusableFile};
use crate::handles::loopback;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::prelude::*;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use subtle::ConstantTimeEq;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tracing::{info, warn};

/// The shortest token: a shorter one could be guessed.
const TOKEN_MIN_BYTES: usize = 16;

/// What the files said when they were read.
pub(super) struct Credentials {
    /// How connections are made; `None`: without TLS.
    acceptor: Option<TlsAcceptor>,
    token: Option<Box<[u8]>>,
    /// Whether all users of this machine may ask. Others do not reach the address.
    is_open: bool,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub(super) fn read(files: &ExtenderFiles) -> Result<Self, UnusableFile> {
        let token = files.token.as_deref().map(token).transpose()?;
        let acceptor = acceptor(files)?;
        Ok(Self {
            acceptor,
            token,
            is_open: files.token.is_none() && files.client_authority.is_none(),
        })
    }

    /// How connections are made; `None`: without TLS.
    pub(super) fn acceptor(&self) -> Option<&TlsAcceptor> {
        self.acceptor.as_ref()
    }

    /// Whether a request may ask whose client has shown no certificate: it has the token, or comes
    /// from a user of this machine where that is enough.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        if self.is_open {
            return loopback::is_named(headers);
        }
        let shown = shown(headers);
        let both = self.token.as_deref().zip(shown.as_deref());
        both.is_some_and(|(token, shown)| token.ct_eq(shown).into())
    }
}

/// The token that a request shows: as a bearer, or as the password of any user, because
/// kube-scheduler can only be given a user and a password, in the URL.
fn shown(headers: &HeaderMap) -> Option<Vec<u8>> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = text.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().into());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = BASE64_STANDARD.decode(value.trim()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].into())
}

/// The credentials, read anew when a file has changed.
pub(super) struct Keyring {
    files: ExtenderFiles,
    last: Mutex<Last>,
}

/// The newest credentials that can be used, and the versions of the files that were read last.
struct Last {
    versions: Vec<Version>,
    credentials: Arc<Credentials>,
}

/// When a file was written, and its length; `None`: this cannot be told.
type Version = Option<(SystemTime, u64)>;

impl Keyring {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub(super) fn new(files: ExtenderFiles) -> Result<Self, UnusableFile> {
        let versions = versions(&files);
        let credentials = Arc::new(Credentials::read(&files)?);
        let last = Mutex::new(Last {
            versions,
            credentials,
        });
        Ok(Self { files, last })
    }

    /// The credentials as they are now. While a new file cannot be used, the old ones go on.
    pub(super) fn now(&self) -> Arc<Credentials> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken before the files are read, so that a change in between is seen the next time.
        let versions = versions(&self.files);
        if last.versions != versions {
            last.versions = versions;
            match Credentials::read(&self.files) {
                Ok(credentials) => {
                    info!("the extender has new credentials");
                    last.credentials = Arc::new(credentials);
                }
                Err(error) => warn!("the extender goes on with its old credentials: {error}"),
            }
        }
        Arc::clone(&last.credentials)
    }
}

fn versions(files: &ExtenderFiles) -> Vec<Version> {
    let certificate = files
        .certificate
        .iter()
        .flat_map(|(one, other)| [one, other]);
    let others = [&files.client_authority, &files.token];
    let all = certificate.chain(others.into_iter().flatten());
    let version = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    all.map(version).collect()
}

fn token(path: &Path) -> Result<Box<[u8]>, UnusableFile> {
    let bytes = contents(path)?;
    let token = bytes.trim_ascii();
    if token.len() < TOKEN_MIN_BYTES {
        let problem = format!("the token must have at least {TOKEN_MIN_BYTES} characters");
        return Err(unusable(path, problem));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        let problem = "the token must be one line of ASCII letters, digits and signs";
        return Err(unusable(path, problem));
    }
    Ok(token.into())
}

fn acceptor(files: &ExtenderFiles) -> Result<Option<TlsAcceptor>, UnusableFile> {
    let Some((certificate, key)) = &files.certificate else {
        return Ok(None);
    };
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(certificate, error))?;
    let builder = match &files.client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots
                    .add(authority)
                    .map_err(|error| unusable(path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            // Who has no certificate may have the token.
            let verifier = match &files.token {
                Some(_) => verifier.allow_unauthenticated(),
                None => verifier,
            };
            let verifier = verifier.build().map_err(|error| unusable(path, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = certificates(certificate)?;
    let private_key = PrivateKeyDer::from_pem_slice(&contents(key)?)
        .map_err(|_| unusable(key, "there is no private key in PEM in it"))?;
    let mut config = builder
        .with_single_cert(chain, private_key)
        .map_err(|error| unusable(certificate, format_args!("{error} ({})", key.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, UnusableFile> {
    let bytes = contents(path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(unusable(path, "there is no certificate in PEM in it")),
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, UnusableFile> {
    std::fs::read(path).map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, problem: impl Display) -> UnusableFile {
    UnusableFile {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
