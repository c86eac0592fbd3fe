//! The configuration that is printed for kube-scheduler, with TLS and credentials.

use std::path::Path;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

use super::*;

const TOKEN: &str = "a-token-that-nobody-guesses";

/// Writes an authority, a certificate of the extender, one of kube-scheduler, and a token.
fn write_credentials(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    write("ca.crt", &authority.pem());
    for (name, host, usage) in [
        (
            "server",
            "gpu-batch-extender.gpu-batch.svc",
            ExtendedKeyUsagePurpose::ServerAuth,
        ),
        ("tls", "client", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        write(&format!("{name}.crt"), &certificate.pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
    write("token", TOKEN);
}

/// The configuration that is printed for kube-scheduler, with the paths of the folder and the token
/// put in.
fn printed(folder: &Path, configuration: &str) -> Value {
    let file = folder.join("scheduler.yaml");
    let head = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n";
    std::fs::write(&file, format!("{head}{configuration}")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .args(["config", "--kube-scheduler", "--config"])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace("TOKEN@", &format!("{TOKEN}@"));
    let folder = folder.display().to_string();
    let text = text.replace("/etc/kubernetes/gpu-batch-extender", &folder);
    serde_saphyr::from_str(&text).unwrap()
}

/// Whether kube-scheduler gets its answers with this key of the extender's configuration.
async fn is_let_in(namespace: &str, credential: &str) {
    let Some(mut cluster) = cluster::own(namespace, OPTIONS).await else {
        return;
    };
    let Some(binaries) = harness::binaries_of(vec![Program::KubeScheduler]).await else {
        return;
    };
    cluster.define_kinds().await;
    let folder = tempfile::tempdir().unwrap();
    write_credentials(folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let path = folder.path().display();
    let extender = format!(
        "extender: {{serveAddress: '{address}', certificateFile: {path}/server.crt, \
         privateKeyFile: {path}/server.key, {credential}: {path}/{}}}\n",
        if credential == "tokenFile" {
            "token"
        } else {
            "ca.crt"
        },
    );
    let configuration = printed(folder.path(), &extender);
    let control_plane = cluster.control_plane();
    control_plane
        .start_kube_scheduler(&binaries, &configuration)
        .unwrap();
    cluster.nodes(["r1"; 2]).await;
    limited(&cluster, 8).await;
    let _scheduler = cluster.scheduler(&extender).await;
    let first = pod(&cluster, "p-0", 4, &json!({})).await;
    let second = pod(&cluster, "p-1", 4, &json!({})).await;
    let nodes = cluster.bound(&[first, second]).await;
    assert_eq!(nodes[0], nodes[1]);
    let third = pod(&cluster, "p-2", 1, &json!({})).await;
    let words = format!("the limit of the queue {namespace} is 8 of nvidia.com/gpu");
    is_refused(&cluster, &third, &words).await;
}

#[tokio::test]
async fn what_is_printed_lets_kube_scheduler_in_with_a_certificate() {
    is_let_in("certified", "clientAuthorityFile").await;
}

#[tokio::test]
async fn what_is_printed_lets_kube_scheduler_in_with_a_token() {
    is_let_in("tokened", "tokenFile").await;
}
