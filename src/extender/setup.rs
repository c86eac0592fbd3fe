//! What kube-scheduler has to be told: its configuration with gpu-batch as its extender.

use super::ExtenderSettings;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The extender's Service, as docs/extender.md makes it.
const SERVICE: &str = "gpu-batch-extender.gpu-batch.svc";
/// The port where the configuration names none.
const PORT: u16 = 8443;

const OFF: &str =
    "# gpu-batch serves no extender yet: set extender.serveAddress in its configuration, with
# certificateFile, privateKeyFile and clientAuthorityFile (docs/extender.md).
";

const BEGIN: &str = "# The configuration of a kube-scheduler with gpu-batch as its extender, for --config. If yours has
# one already, take over what stands below extenders, which holds for all its profiles.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  # With what kube-scheduler reaches the API server.
  kubeconfig: /etc/kubernetes/scheduler.conf
leaderElection:
  leaderElect: true
profiles:
  # Pods with this name and the label gpu-batch.io/queue count in their queue. gpu-batch knows the
  # name as extender.schedulerName.
";

const VERBS: &str =
    "    # Refuses nodes where a queue or room that is held for others does not allow the pod.
    filterVerb: filter
    # Orders nodes by the placement of the pod's queue.
    prioritizeVerb: prioritize
    # One step between two nodes counts ten times this. All plugins of kube-scheduler together give
    # 1,200 at most with their own weights, so the placement decides, and they where it sees none.
    weight: 200
    # Keeps kube-scheduler from evicting parts of gangs. Without it, any victim is allowed.
    preemptVerb: preempt
    # Lets gpu-batch bind, so that what a queue has does not depend on answers of a moment ago.
    # Only one extender can bind.
    bindVerb: bind
    # gpu-batch knows all nodes: their names are enough.
    nodeCacheCapable: true
    # gpu-batch answers within four seconds, if need be that it does not know.
    httpTimeout: 5s
    # While gpu-batch does not answer, this kube-scheduler places no pod. With true it goes on alone:
    # also where gpu-batch refuses a bind, so that queues may exceed their limits.
    ignorable: false
    # There are no managedResources, so that gpu-batch is asked for all pods: those without GPUs
    # must not take room that is held for others either.
";

const PLAIN: &str = "    # Plain HTTP, on this machine only. gpu-batch refuses other addresses without a certificate.
";

const TLS: &str = "    enableHTTPS: true
    tlsConfig:
      # The authority that has signed gpu-batch's certificateFile. Without it, kube-scheduler would
      # believe any certificate.
      caFile: /etc/kubernetes/gpu-batch-extender/ca.crt
      # The name in that certificate, whatever address stands above.
";

const CLIENT: &str = "      # What kube-scheduler shows: signed by gpu-batch's clientAuthorityFile.
      certFile: /etc/kubernetes/gpu-batch-extender/tls.crt
      keyFile: /etc/kubernetes/gpu-batch-extender/tls.key
";

const TOKEN: &str = "    # TOKEN stands for what is in gpu-batch's tokenFile. kube-scheduler writes this URL into its log,
    # so a client certificate (clientAuthorityFile) keeps a secret better.
";

const UNSPECIFIED: &str =
    "    # A kube-scheduler in the network of its host does not know names of Services: give it the
    # clusterIP of the Service instead.
";

/// A `KubeSchedulerConfiguration` for these settings, with a comment on every choice. `None`: the
/// extender is off; what is missing is said first.
pub(crate) fn kube_scheduler_configuration(settings: Option<&ExtenderSettings>) -> String {
    let anywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    let address = settings.map_or(anywhere, |settings| settings.serve_address);
    let name = settings.map_or("default-scheduler", |settings| &settings.scheduler_name);
    let has_tls = settings.is_none_or(|settings| settings.files.certificate.is_some());
    let is_certified = settings.is_none_or(|settings| settings.files.client_authority.is_some());
    let shows_token =
        !is_certified && settings.is_some_and(|settings| settings.files.token.is_some());
    let is_service = address.ip().is_unspecified();
    let host = match address.ip() {
        _ if is_service => SERVICE.to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let scheme = if has_tls { "https" } else { "http" };
    let user = if shows_token { "gpu-batch:TOKEN@" } else { "" };
    let port = address.port();

    let said = |said: bool, text: &'static str| if said { text } else { "" };
    let mut text = said(settings.is_none(), OFF).to_owned() + BEGIN;
    text += &format!("  - schedulerName: {name}\nextenders:\n  -\n");
    text += said(is_service, UNSPECIFIED);
    text += said(shows_token, TOKEN);
    text += &format!("    urlPrefix: {scheme}://{user}{host}:{port}\n");
    if has_tls {
        text += TLS;
        text += &format!("      serverName: {SERVICE}\n");
        text += said(is_certified, CLIENT);
    } else {
        text += PLAIN;
    }
    text + VERBS
}

#[cfg(test)]
mod tests {
    use super::kube_scheduler_configuration;
    use crate::extender::{ExtenderFiles, ExtenderSettings};
    use serde_json::Value;

    fn printed(address: &str, files: ExtenderFiles) -> Value {
        let settings = ExtenderSettings {
            serve_address: address.parse().unwrap(),
            scheduler_name: "day-shift".to_owned(),
            files,
        };
        let text = kube_scheduler_configuration(Some(&settings));
        assert!(!text.contains("serves no extender"), "{text}");
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(value["profiles"][0]["schedulerName"], "day-shift");
        value["extenders"][0].clone()
    }

    #[test]
    fn what_is_printed_reaches_the_extender_of_the_configuration() {
        let certificate = Some(("a".into(), "b".into()));
        let extender = printed(
            "0.0.0.0:8443",
            ExtenderFiles {
                certificate: certificate.clone(),
                client_authority: Some("c".into()),
                token: Some("d".into()),
            },
        );
        assert_eq!(
            extender["urlPrefix"],
            "https://gpu-batch-extender.gpu-batch.svc:8443"
        );
        assert_eq!(extender["enableHTTPS"], true);
        assert!(extender["tlsConfig"]["certFile"].is_string());
        assert_eq!(extender["nodeCacheCapable"], true);
        assert_eq!(extender["ignorable"], false);
        assert!(extender.get("managedResources").is_none());
        for verb in ["filter", "prioritize", "preempt", "bind"] {
            assert_eq!(extender[format!("{verb}Verb")], verb);
        }

        let with_token = ExtenderFiles {
            certificate,
            token: Some("d".into()),
            ..ExtenderFiles::default()
        };
        let extender = printed("10.0.0.7:9", with_token);
        assert_eq!(extender["urlPrefix"], "https://gpu-batch:TOKEN@10.0.0.7:9");
        assert!(extender["tlsConfig"].get("certFile").is_none());

        let extender = printed("[::1]:9", ExtenderFiles::default());
        assert_eq!(extender["urlPrefix"], "http://[::1]:9");
        assert!(extender.get("tlsConfig").is_none());
        assert!(extender.get("enableHTTPS").is_none());
    }

    #[test]
    fn an_extender_that_is_off_is_said_to_be() {
        let text = kube_scheduler_configuration(None);
        assert!(text.starts_with("# gpu-batch serves no extender yet: set extender.serveAddress"));
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(value["kind"], "KubeSchedulerConfiguration");
    }
}
