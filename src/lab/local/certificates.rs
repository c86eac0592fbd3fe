//! The keys and certificates of one control plane, made anew for each.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use super::LocalError;

/// The PEM files that the programs are pointed to.
#[derive(Debug)]
pub(super) struct Certificates {
    /// The authority that signed the certificates of server and admin.
    pub(super) authority: PathBuf,
    /// The certificate of the API server.
    pub(super) server: PathBuf,
    pub(super) server_key: PathBuf,
    /// A user in the group `system:masters`: allowed everything and never throttled.
    pub(super) admin: PathBuf,
    pub(super) admin_key: PathBuf,
    /// Signs the tokens of service accounts.
    pub(super) service_account_key: PathBuf,
    /// Checks these tokens: the API server does not derive the public key from this kind of key.
    pub(super) service_account_public_key: PathBuf,
}

impl Certificates {
    /// Writes a new set into `folder`, which other users must not be able to read.
    pub(super) fn create(folder: &Path) -> Result<Self, LocalError> {
        let file = |name: &str| folder.join(name);
        let certificates = Self {
            authority: file("authority.crt"),
            server: file("server.crt"),
            server_key: file("server.key"),
            admin: file("admin.crt"),
            admin_key: file("admin.key"),
            service_account_key: file("service-account.key"),
            service_account_public_key: file("service-account.pub"),
        };
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "gpu-batch-local");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(String::from);
        let mut server = CertificateParams::new(names)?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let mut admin = CertificateParams::default();
        admin.distinguished_name.push(DnType::CommonName, "admin");
        admin
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];

        write(&certificates.authority, &authority.pem())?;
        for (params, certificate, key_file) in [
            (server, &certificates.server, &certificates.server_key),
            (admin, &certificates.admin, &certificates.admin_key),
        ] {
            let key = KeyPair::generate()?;
            write(certificate, &params.signed_by(&key, &authority)?.pem())?;
            write(key_file, &key.serialize_pem())?;
        }
        let key = KeyPair::generate()?;
        write(&certificates.service_account_key, &key.serialize_pem())?;
        write(
            &certificates.service_account_public_key,
            &key.public_key_pem(),
        )?;
        Ok(certificates)
    }
}

fn write(path: &Path, text: &str) -> Result<(), LocalError> {
    fs::write(path, text).map_err(LocalError::io("write", path))
}
