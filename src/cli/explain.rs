use super::Failure;
use super::plan::{Output, print, world};
use crate::connection;
use crate::explain::{ExplanationView, draw};
use crate::plan;
use crate::table::printable;
use anyhow::{Context, anyhow};
use gpu_batch_policies::explain::Subject;
use http::{Request, StatusCode};
use kube::client::Body;
use std::path::PathBuf;
use std::time::Duration;

/// Where a scheduler answers that runs here, or to which a port is forwarded.
const SERVER: &str = "http://127.0.0.1:8080";
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Say why a gang waits, what is missing, and what would let it start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch explain podgroup vision/train
  gpu-batch explain pod vision/train-0 -o json
  gpu-batch explain podgroup vision/sweep -f examples/gang.yaml

A gang without a PodGroup is NAMESPACE/job/NAME or NAMESPACE/pod/NAME. The scheduler answers on its
own machine only; reach the one that leads in a cluster with
  kubectl port-forward -n gpu-batch \\
    pod/$(kubectl get lease -n gpu-batch gpu-batch -o jsonpath='{.spec.holderIdentity}') 8080")]
pub(super) struct Args {
    /// What the name means
    #[arg(value_enum)]
    kind: Kind,
    /// NAMESPACE/NAME
    #[arg(value_name = "NAMESPACE/NAME")]
    name: String,
    /// Where the scheduler serves its pages
    #[arg(long, value_name = "URL", default_value = SERVER, conflicts_with = "filename")]
    server: String,
    /// Instead of a scheduler: a file of Kubernetes objects, a folder of such files, or - for
    /// standard input
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    filename: Vec<PathBuf>,
    /// With files, the configuration file (see `gpu-batch config --print-defaults`)
    #[arg(long, value_name = "FILE", requires = "filename")]
    config: Option<PathBuf>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// A pod
    Pod,
    /// A gang
    #[value(alias = "gang", alias = "gpg")]
    Podgroup,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let Args { kind, name, .. } = &args;
    let parts: Vec<&str> = name.split('/').collect();
    let whole = match (kind, parts.as_slice()) {
        (_, parts) if parts.contains(&"") => false,
        (_, [_, _]) => true,
        (Kind::Podgroup, [_, "job" | "pod", _]) => true,
        _ => false,
    };
    if !whole {
        let wanted = match kind {
            Kind::Pod => "NAMESPACE/NAME",
            Kind::Podgroup => "NAMESPACE/NAME, NAMESPACE/job/NAME or NAMESPACE/pod/NAME",
        };
        return Err(Failure::BadInput(anyhow!(
            "`{name}`: the name must be {wanted}"
        )));
    }
    let view = if args.filename.is_empty() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("failed to start the asynchronous runtime")?;
        runtime.block_on(of_scheduler(&args.server, *kind, name))?
    } else {
        of_files(&args)?
    };
    print(&match args.output {
        Output::Table => printable(&draw(&view)),
        Output::Json => serde_json::to_string_pretty(&view)? + "\n",
    })
}

fn of_files(args: &Args) -> Result<ExplanationView, Failure> {
    let subject = match args.kind {
        Kind::Pod => Subject::Pod(&args.name),
        Kind::Podgroup => Subject::Gang(&args.name),
    };
    let (objects, options) = world(&args.filename, args.config.as_deref())?;
    let explained = plan::explain(objects, options, subject)?;
    explained
        .map(Into::into)
        .map_err(|error| Failure::BadInput(error.into()))
}

async fn of_scheduler(server: &str, kind: Kind, name: &str) -> Result<ExplanationView, Failure> {
    let bad = |error: anyhow::Error| Failure::BadInput(error.context("--server"));
    let url = server.trim_end_matches('/');
    let base = url
        .parse()
        .map_err(|_| bad(anyhow!("`{server}` is no URL")))?;
    let client = connection::client(&kube::Config::new(base)).map_err(|error| bad(error.into()))?;
    let kind = match kind {
        Kind::Pod => "pod",
        Kind::Podgroup => "podgroup",
    };
    let request = Request::get(format!("/explain/{kind}/{name}"));
    let request = request
        .body(Body::empty())
        .map_err(|error| Failure::BadInput(error.into()))?;
    let answer = async {
        let response = client.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect_bytes().await?;
        anyhow::Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    let (status, body) = answer.map_err(anyhow::Error::from).flatten().with_context(|| {
        format!("no scheduler answers at {server}; see `gpu-batch explain --help` for how to reach one")
    })?;
    match status {
        StatusCode::OK => Ok(serde_json::from_str(&body)
            .with_context(|| format!("{server} answers in a way that this version cannot read"))?),
        StatusCode::NOT_FOUND => Err(Failure::BadInput(anyhow!("{}", body.trim_end()))),
        _ => Err(anyhow!("{server} answers {status}: {}", body.trim_end()).into()),
    }
}
