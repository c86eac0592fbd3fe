use super::files::FilesArgs;
use super::options::ClusterArgs;
use super::output::{Output, print};
use super::scheduler::SchedulerArgs;
use super::{Failure, wait_for};
use crate::plan;
use crate::views::gangs::{self, Gangs};
use crate::views::table::Screen;

/// List the gangs that wait, with why.
///
/// Those without a PodGroup stand there too, as NAMESPACE/job/NAME, NAMESPACE/pod/NAME and so on.
/// The scheduler that leads is asked through the API server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch gangs
  gpu-batch gangs -n vision --queue team-vision
  gpu-batch gangs --all -o json
  gpu-batch gangs -f examples/gang.yaml

`gpu-batch explain podgroup NAME` takes one of them apart.")]
#[command(mut_arg("namespace", |argument| {
    argument.help("Only gangs of this namespace. Without it: of all")
}))]
pub(super) struct Args {
    /// Only gangs that name this queue
    #[arg(short, long, value_name = "NAME")]
    queue: Option<String>,
    /// Also gangs of which nothing waits
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    files: FilesArgs,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    scheduler: SchedulerArgs,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let mut found: Gangs = if args.files.are_named() {
        // Here the namespace is a filter, and not the place of objects that name none.
        let cluster = ClusterArgs {
            namespace: None,
            ..args.scheduler.cluster.clone()
        };
        let world = args.files.world(&cluster)?;
        plan::gangs(world.objects, world.options)?
    } else {
        wait_for(async { args.scheduler.find().await?.ask("/gangs").await })?
    };
    let namespace = args.scheduler.cluster.namespace.as_deref();
    let of = of_which(args.queue.as_deref(), namespace);
    found.gangs.retain(|gang| {
        (args.all || gang.waits)
            && namespace.is_none_or(|namespace| gang.namespace() == namespace)
            && args.queue.as_ref().is_none_or(|queue| gang.queue == *queue)
    });
    print(&match args.output {
        Output::Table if found.gangs.is_empty() && args.all => format!("There is no gang{of}.\n"),
        Output::Table if found.gangs.is_empty() => format!("No gang{of} waits.\n"),
        Output::Table => gangs::draw(&found, Screen::of_stdout()),
        Output::Json => serde_json::to_string_pretty(&found)? + "\n",
    })
}

/// Of which queue and namespace gangs were asked for, to go behind `gang`: a name that was typed
/// wrongly is not to read as good news.
fn of_which(queue: Option<&str>, namespace: Option<&str>) -> String {
    let queue = queue.map(|queue| format!(" that names the queue {queue:?}"));
    let namespace = namespace.map(|namespace| format!(" in the namespace {namespace:?}"));
    [queue, namespace].into_iter().flatten().collect()
}
