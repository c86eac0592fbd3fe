use super::Failure;
use super::plan::{Output, print, world};
use crate::connection;
use crate::explain::{ExplanationView, draw};
use crate::plan;
use crate::table::printable;
use anyhow::{Context, anyhow};
use gpu_batch_policies::explain::Subject;
use http::{Request, StatusCode, Uri};
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
    #[arg(long, value_name = "URL", default_value = SERVER, conflicts_with = "filename",
          value_parser = address)]
    server: Uri,
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

/// Reads where a scheduler serves its pages. The client panics where there is no scheme.
fn address(text: &str) -> Result<Uri, String> {
    let whole = text.parse::<Uri>().ok().filter(|address| {
        let page = address.path_and_query().map_or("", |page| page.as_str());
        matches!(address.scheme_str(), Some("http" | "https"))
            && address.host().is_some_and(|host| !host.is_empty())
            && matches!(page, "" | "/")
    });
    whole.ok_or_else(|| {
        let (_, rest) = text.split_once("://").unwrap_or(("", text));
        let host = rest.split('/').next().filter(|host| !host.is_empty());
        let meant = host.map_or_else(String::new, |host| format!("; did you mean http://{host}?"));
        format!("write it like {SERVER}, with http:// and without a page{meant}")
    })
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

async fn of_scheduler(server: &Uri, kind: Kind, name: &str) -> Result<ExplanationView, Failure> {
    let client = connection::client(&kube::Config::new(server.clone()))
        .map_err(|error| Failure::BadInput(error.into()))?;
    let server = server.to_string();
    let server = server.trim_end_matches('/');
    let kind = match kind {
        Kind::Pod => "pod",
        Kind::Podgroup => "podgroup",
    };
    let request = Request::get(format!("/explain/{kind}/{name}"));
    let request = request
        .body(Body::empty())
        .map_err(|error| Failure::BadInput(anyhow!("`{name}` is not a name: {error}")))?;
    let answer = async {
        let response = client.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect_bytes().await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    let answer = answer.map_or_else(
        |_| Err(format!("there was no answer for {} s", TIMEOUT.as_secs())),
        |answer: Result<_, kube::Error>| answer.map_err(|error| connection::obstacle(&error)),
    );
    let (status, body) = answer.map_err(|obstacle| {
        anyhow!(
            "no scheduler answers at {server}: {obstacle}; forward the port of the one that leads, \
             as `gpu-batch explain --help` shows, or name its address with --server"
        )
    })?;
    let said = body.trim_end();
    match status {
        StatusCode::OK => Ok(serde_json::from_str(&body)
            .map_err(|_| anyhow!("{server} answers in a way that this version cannot read"))?),
        StatusCode::NOT_FOUND if said.is_empty() => Err(anyhow!(
            "{server} explains nothing: it is not a gpu-batch scheduler, or it runs on another \
             machine and its port must be forwarded, as `gpu-batch explain --help` shows"
        )
        .into()),
        StatusCode::NOT_FOUND => Err(Failure::BadInput(anyhow!("{said}"))),
        _ => Err(anyhow!("{server} answers {status}: {said}").into()),
    }
}
