//! The key `extender`: where kube-scheduler asks, and by what it is known.

use super::Problems;
use crate::extender::{ExtenderFiles, ExtenderSettings};
use crate::live::config::file::{ConfigurationFile, ExtenderFile};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The extender as the file has it; `None`: there is none, or it has problems, which are noted.
pub(super) fn check(file: &ConfigurationFile, problems: &mut Problems) -> Option<ExtenderSettings> {
    let extender = &file.extender;
    let serve_address = extender.serve_address.as_ref()?.parse::<SocketAddr>();
    problems.require(
        serve_address.is_ok(),
        "extender.serveAddress",
        "must be an IP address and a port, as in 0.0.0.0:8443 or [::]:8443, or null",
    );
    problems.require(
        extender.scheduler_name != file.scheduler_name,
        "extender.schedulerName",
        "must differ from schedulerName: it is the name of kube-scheduler",
    );
    problems.require(
        extender.serve_address.as_deref() != Some(&*file.serve_address),
        "extender.serveAddress",
        "must differ from serveAddress",
    );
    let path = |name: &Option<String>| name.as_ref().map(PathBuf::from);
    let certificate = path(&extender.certificate_file);
    let private_key = path(&extender.private_key_file);
    problems.require(
        private_key.is_none() || certificate.is_some(),
        "extender.certificateFile",
        "must be set where privateKeyFile is",
    );
    problems.require(
        certificate.is_none() || private_key.is_some(),
        "extender.privateKeyFile",
        "must be set where certificateFile is",
    );
    let serve_address = serve_address.ok()?;
    guard(extender, serve_address, problems);
    Some(ExtenderSettings {
        serve_address,
        scheduler_name: extender.scheduler_name.clone(),
        files: ExtenderFiles {
            certificate: certificate.zip(private_key),
            client_authority: path(&extender.client_authority_file),
            token: path(&extender.token_file),
        },
    })
}

/// Requires that strangers neither ask nor listen.
fn guard(extender: &ExtenderFile, address: SocketAddr, problems: &mut Problems) {
    let has_certificate =
        extender.certificate_file.is_some() || extender.private_key_file.is_some();
    problems.require(
        has_certificate || extender.client_authority_file.is_none(),
        "extender.clientAuthorityFile",
        "needs certificateFile and privateKeyFile: without them nobody is asked for a certificate",
    );
    if address.ip().to_canonical().is_loopback() {
        return;
    }
    problems.require(
        has_certificate,
        "extender.certificateFile",
        format_args!(
            "must be set, with privateKeyFile, because other machines reach {address}; or serve on \
             127.0.0.1, beside kube-scheduler"
        ),
    );
    problems.require(
        extender.client_authority_file.is_some() || extender.token_file.is_some(),
        "extender",
        format_args!(
            "clientAuthorityFile or tokenFile must be set, because other machines reach {address}, \
             and whoever may ask may bind pods"
        ),
    );
}
