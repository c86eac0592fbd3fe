//! Holds what gpu-batch says of a case against what the oracle says.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gpu_batch_policies::report::PreferenceScores;
use serde_json::Value;

use crate::families::MIGRATED;
use crate::oracle::{Answer, Stored};
use crate::ours::{self, Files, Judged, Mistake};

/// In which way the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// The API server refuses the pod, and `plan` reads it.
    OnlyTheyRefuse,
    /// `plan` refuses the pod or a node, and the API server does not.
    OnlyWeRefuse,
    /// Both refuse the pod, for other fields.
    OtherFields,
    /// The verdicts on nodes differ, of objects in files.
    InFiles,
    /// The verdicts on nodes differ, of objects in a cluster.
    InClusters,
    /// The scores of nodes that fit differ by more than a point.
    Scores,
    /// A node was chosen that does not fit or is not the preferred one, or none although one fits.
    Choice,
    /// gpu-batch panicked.
    Panic,
}

/// What a comparison has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) difference: Option<(Sort, String)>,
    /// Whether the API server refuses the pod.
    pub(crate) refused: bool,
    /// Whether nothing was compared, because the pod asks for what is not supported.
    pub(crate) skipped: bool,
    /// On how many nodes the pod may run, and on how many it may not.
    pub(crate) fits: usize,
    pub(crate) misfits: usize,
    /// How many nodes each plugin of kube-scheduler refuses.
    pub(crate) by_plugin: BTreeMap<String, usize>,
    /// How many scores of each plugin were compared that are neither the least nor the most.
    pub(crate) scores: BTreeMap<&'static str, usize>,
    /// Verdicts that differ on purpose: a node that is not ready takes no pod, whatever the pod
    /// tolerates.
    pub(crate) not_ready: usize,
}

/// Compares everything that can be compared of a case.
pub(crate) fn compare(case: &Value, answer: &Answer, files: &Files) -> Found {
    let compared = AssertUnwindSafe(|| {
        let mut found = Found::default();
        found.difference = find(case, answer, files, &mut found).err();
        found
    });
    catch_unwind(compared).unwrap_or_else(|_| Found {
        difference: Some((Sort::Panic, "gpu-batch panics".to_owned())),
        ..Found::default()
    })
}

fn find(
    case: &Value,
    answer: &Answer,
    files: &Files,
    found: &mut Found,
) -> Result<(), (Sort, String)> {
    found.refused = !answer.refused.is_empty();
    let judged = match files.judge(case) {
        Ok(judged) if answer.refused.is_empty() => judged,
        Ok(_) => {
            let said = theirs(answer);
            return Err((
                Sort::OnlyTheyRefuse,
                format!("the API server refuses {said}"),
            ));
        }
        Err(mistakes) if answer.refused.is_empty() => {
            let said = of_ours(&mistakes);
            return Err((Sort::OnlyWeRefuse, format!("plan refuses {said}")));
        }
        Err(mistakes) => return same_fields(answer, &mistakes),
    };
    if !judged.unsupported.is_empty() {
        found.skipped = true;
        return Ok(());
    }
    same_verdicts(&judged, answer, found).map_err(|words| (Sort::InFiles, words))?;
    found.fits = answer
        .nodes
        .values()
        .filter(|verdict| verdict.is_empty())
        .count();
    found.misfits = answer.nodes.len() - found.fits;
    for verdict in answer.nodes.values().filter(|verdict| !verdict.is_empty()) {
        let (plugin, _) = verdict.split_once(':').unwrap();
        let plugin = plugin.trim_matches(['[', ']']);
        *found.by_plugin.entry(plugin.to_owned()).or_default() += 1;
    }
    let Some(stored) = &answer.stored else {
        return Ok(());
    };
    let of_cluster = ours::judge_stored(stored, case);
    same_verdicts(&of_cluster, answer, &mut Found::default())
        .map_err(|words| (Sort::InClusters, words))?;
    if found.not_ready == 0 {
        same_scores(&judged, answer, found).map_err(|words| (Sort::Scores, words))?;
        same_scores(&of_cluster, answer, found).map_err(|words| (Sort::Scores, words))?;
    }
    good_choice(stored, case, &judged).map_err(|words| (Sort::Choice, words))
}

/// Both must name the same fields, so that users find their mistakes.
fn same_fields(answer: &Answer, mistakes: &[Mistake]) -> Result<(), (Sort, String)> {
    let theirs = || answer.refused.iter().map(|one| &*one.field);
    let ours = || mistakes.iter().map(|one| &*one.field);
    // A pod that cannot be decoded has no field of theirs. And where an amount is wrong, sums and
    // comparisons with it are wrong for the API server, too.
    let follows = |one: &str| one.is_empty() || one.starts_with("spec.resources.");
    let same = theirs().all(|one| follows(one) || ours().any(|other| same_field(one, other)))
        && ours().all(|one| theirs().any(|other| same_field(other, one)));
    if same {
        return Ok(());
    }
    let (theirs, ours) = (self::theirs(answer), of_ours(mistakes));
    let words = format!("the API server refuses {theirs}\n  plan refuses {ours}");
    Err((Sort::OtherFields, words))
}

/// Whether two fields are the same, or one is a part of the other: the API server names the list
/// of requests, and gpu-batch the resource in it.
fn same_field(theirs: &str, ours: &str) -> bool {
    let (theirs, ours) = (plain(theirs), plain(ours));
    ours.starts_with(&theirs) || theirs.starts_with(&ours)
}

/// A field, without what both name differently on purpose. The API server puts overhead into
/// limits, the limits of containers below the pod's, and mistakes in values of tolerations under
/// their operators; it names the first init container where another one takes a port twice; and a
/// limit is a request, too.
fn plain(field: &str) -> String {
    let field = field
        .replace("overhead.limits", "overhead")
        .replace("limits", "requests");
    if let Some(container) = field.strip_prefix("spec.resources.containers[") {
        let (index, rest) = container.split_once(']').unwrap();
        let resource = rest.trim_end_matches(".requests");
        return format!("spec.containers[{index}].resources.requests{resource}");
    }
    if let Some((init, port)) = field.split_once(".ports[")
        && init.starts_with("spec.initContainers[")
    {
        return format!("spec.initContainers.ports[{port}");
    }
    match field.strip_suffix(".operator") {
        Some(toleration) if field.starts_with("spec.tolerations[") => format!("{toleration}.value"),
        _ => field,
    }
}

fn theirs(answer: &Answer) -> String {
    let all = answer.refused.iter();
    let all = all.map(|one| format!("{}: {}", one.field, one.message));
    all.collect::<Vec<_>>().join("; ")
}

fn of_ours(mistakes: &[Mistake]) -> String {
    let all = mistakes.iter();
    let all = all.map(|one| format!("{}: {}: {}", one.object, one.field, one.message));
    all.collect::<Vec<_>>().join("; ")
}

fn same_verdicts(judged: &Judged, answer: &Answer, found: &mut Found) -> Result<(), String> {
    let names: BTreeSet<&String> = judged.nodes.keys().chain(answer.nodes.keys()).collect();
    for name in names {
        let said = |verdicts: &BTreeMap<String, String>| match verdicts.get(name) {
            None => "does not know the node".to_owned(),
            Some(verdict) if verdict.is_empty() => String::new(),
            Some(verdict) => format!("refuses it: {verdict}"),
        };
        let (theirs, ours) = (said(&answer.nodes), said(&judged.nodes));
        if theirs.is_empty() == ours.is_empty() {
            continue;
        }
        // Taints are judged first: the pod tolerates them.
        let only_for_it = ours.contains("not ready");
        if theirs.is_empty() && only_for_it && judged.not_ready.contains(name) {
            found.not_ready += 1;
            continue;
        }
        let words = |said: String| match said.is_empty() {
            true => "takes the pod".to_owned(),
            false => said,
        };
        let (theirs, ours) = (words(theirs), words(ours));
        return Err(format!(
            "node {name}: kube-scheduler {theirs}; gpu-batch {ours}"
        ));
    }
    Ok(())
}

/// The plugins that score, each with the score that gpu-batch gives in its place.
pub(crate) fn plugins(ours: &PreferenceScores) -> [(&'static str, u32); 5] {
    [
        ("TaintToleration", ours.taints),
        ("NodeAffinity", ours.node_affinity),
        ("PodTopologySpread", ours.spread),
        ("InterPodAffinity", ours.pods),
        ("ImageLocality", ours.images),
    ]
}

/// Each preference alone orders nodes as its plugin does, up to a point.
fn same_scores(judged: &Judged, answer: &Answer, found: &mut Found) -> Result<(), String> {
    for (node, theirs) in &answer.scores {
        let Some(ours) = judged.scores.get(node) else {
            return Err(format!("node {node} fits and has no scores"));
        };
        for (plugin, ours) in plugins(ours) {
            let theirs = theirs.get(plugin).copied().unwrap_or(0);
            *found.scores.entry(plugin).or_default() += usize::from((1..100).contains(&theirs));
            if theirs.abs_diff(ours) > 1 {
                return Err(format!(
                    "node {node}: {plugin} scores {theirs}; gpu-batch {ours}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a case has an object of a kind.
fn has(case: &Value, kind: &str) -> bool {
    let objects = case["objects"].as_array();
    objects.is_some_and(|objects| objects.iter().any(|object| object["kind"] == kind))
}

/// Whether drivers of a node have taken over volumes from before CSI.
fn has_taken_over(case: &Value) -> bool {
    let objects = case["objects"].as_array();
    objects.is_some_and(|objects| {
        let mut nodes = objects.iter().filter(|object| object["kind"] == "CSINode");
        nodes.any(|node| node["metadata"]["annotations"].get(MIGRATED).is_some())
    })
}

/// Whether there is a volume that a claim without one may get.
fn gets_free_volume(case: &Value) -> bool {
    let objects = case["objects"].as_array().map_or(&[][..], Vec::as_slice);
    let is_open = |object: &Value| {
        object["kind"] == "PersistentVolumeClaim" && object["spec"].get("volumeName").is_none()
    };
    let is_free = |object: &Value| {
        object["kind"] == "PersistentVolume" && object["status"]["phase"] == "Available"
    };
    objects.iter().any(is_open) && objects.iter().any(is_free)
}

/// The pod is placed on a node that fits, if there is one, and prefers it to no other.
fn good_choice(stored: &Stored, case: &Value, judged: &Judged) -> Result<(), String> {
    let fits = |name: &String| judged.nodes.get(name).is_some_and(String::is_empty);
    let best = judged.scores.values().map(PreferenceScores::sum).max();
    let score = |name: &String| judged.scores.get(name).map(PreferenceScores::sum);
    match ours::choice(stored, case) {
        Ok(node) if fits(&node) && score(&node) == best => Ok(()),
        Ok(node) if fits(&node) => Err(format!("the pod is placed on {node}, not the preferred")),
        // A volume that was made for the first choice is there, and every node reaches it, when a
        // free volume that the pod's claim got with that choice is one too many on the node.
        Ok(_) if gets_free_volume(case) && has(case, "CSINode") => Ok(()),
        Ok(node) => Err(format!("the pod is placed on {node}, which does not fit")),
        // A free volume that the pod's claim has got by then is counted from then on.
        Err(why) if why.contains("attachable volumes of") && gets_free_volume(case) => Ok(()),
        // One from before CSI is then where its driver looks for it: kube-scheduler's bind fails
        // there, too.
        Err(_) if gets_free_volume(case) && has_taken_over(case) => Ok(()),
        Err(_) => match judged.nodes.keys().find(|name| fits(name)) {
            Some(node) => Err(format!("the pod is placed nowhere, and {node} fits")),
            None => Ok(()),
        },
    }
}
