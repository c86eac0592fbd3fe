use super::files::FilesArgs;
use super::output::{Output, print};
use super::scheduler::SchedulerArgs;
use super::{Failure, wait_for};
use crate::plan;
use crate::views::explain::{ExplanationView, draw};
use crate::views::table::printable;
use anyhow::anyhow;
use gpu_batch_policies::explain::Subject;
use http::uri::PathAndQuery;

/// Say why a gang waits, what is missing, and what would let it start.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "gpu-batch explain <KIND> <NAME> [-f <FILE>...] [OPTIONS]",
    after_help = "\
Examples:
  gpu-batch explain podgroup vision/train
  gpu-batch explain pod vision/train-0 -o json
  gpu-batch explain podgroup train -n vision --context production
  gpu-batch explain podgroup vision/sweep -f examples/gang.yaml

A gang without a PodGroup is NAMESPACE/KIND/NAME of its owner or pod, such as NAMESPACE/job/NAME,
NAMESPACE/deployment/NAME or NAMESPACE/pod/NAME. The scheduler that leads is asked through the API
server; users who may forward ports to its pod may ask."
)]
pub(super) struct Args {
    /// What the name means
    #[arg(value_enum)]
    kind: Kind,
    /// NAMESPACE/NAME, or NAME in the namespace of -n or of the context
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    files: FilesArgs,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    scheduler: SchedulerArgs,
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
    check_name(args.kind, &args.name)?;
    let view = if args.files.are_named() {
        of_files(&args)?
    } else {
        wait_for(of_scheduler(&args))?
    };
    print(&match args.output {
        Output::Table => printable(&draw(&view)),
        Output::Json => serde_json::to_string_pretty(&view)? + "\n",
    })
}

fn check_name(kind: Kind, name: &str) -> Result<(), Failure> {
    let parts: Vec<&str> = name.split('/').collect();
    match (kind, parts.as_slice()) {
        (_, parts) if parts.contains(&"") => {}
        (_, [_] | [_, _]) | (Kind::Podgroup, [_, _, _]) => return Ok(()),
        _ => {}
    }
    let wanted = match kind {
        Kind::Pod => "NAME or NAMESPACE/NAME",
        Kind::Podgroup => {
            "NAME, NAMESPACE/NAME, or NAMESPACE/KIND/NAME of an owner or a pod, such as \
             NAMESPACE/job/NAME"
        }
    };
    Err(Failure::BadInput(anyhow!(
        "`{name}`: the name must be {wanted}"
    )))
}

/// The name with its namespace.
fn whole(name: &str, namespace: &str) -> String {
    if name.contains('/') {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

async fn of_scheduler(args: &Args) -> Result<ExplanationView, Failure> {
    let scheduler = args.scheduler.find().await?;
    let name = whole(&args.name, &scheduler.namespace);
    let kind = match args.kind {
        Kind::Pod => "pod",
        Kind::Podgroup => "podgroup",
    };
    let path = format!("/explain/{kind}/{name}");
    PathAndQuery::try_from(&path)
        .map_err(|error| Failure::BadInput(anyhow!("`{name}` is not a name: {error}")))?;
    scheduler.ask(&path).await
}

fn of_files(args: &Args) -> Result<ExplanationView, Failure> {
    let world = args.files.world(&args.scheduler.cluster)?;
    let name = whole(&args.name, &world.namespace);
    let subject = match args.kind {
        Kind::Pod => Subject::Pod(&name),
        Kind::Podgroup => Subject::Gang(&name),
    };
    let explained = plan::explain(world.objects, world.options, subject)?;
    explained
        .map(Into::into)
        .map_err(|error| Failure::BadInput(error.into()))
}
