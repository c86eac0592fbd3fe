//! Worlds in which pods have rules about other pods, or preferences: affinity, anti-affinity, and
//! spread. All of it is drawn from a sequence of its own, so that other worlds are not changed by
//! this module.

use super::{APP, APPS, Arrival, LEVELS, NONE, QUEUES};
use crate::cluster::Recipe;
use crate::objects::{NAMESPACE, pod};
use crate::random::Random;
use gpu_batch_policies::facts::{
    LabelSelector, PodFacts, PodLabels, PodSelection, PodTerm, Preferences, PreferredPods,
    Relations, SpreadRule, UnixMs,
};
use std::sync::Arc;

/// How many single pods with preferences about pods come beside the gangs, in half of all worlds:
/// where they come and go, gangs are woken that would sleep otherwise.
const SINGLE_PODS: u64 = 10;

/// Gives rules to the pods of half of all gangs, and preferences to those of a quarter. Small
/// single pods with preferences come, too: of these a judge can tell where they should be.
pub(crate) fn relate(arrivals: &mut Vec<(UnixMs, Arrival)>, random: &mut Random) {
    let times: Vec<UnixMs> = arrivals.iter().map(|(at_ms, _)| *at_ms).collect();
    for (_, arrival) in arrivals.iter_mut() {
        let Arrival::Gang(_, recipes) = arrival else {
            continue;
        };
        if random.percent(50) {
            let rules = rules(random);
            for recipe in recipes {
                give(&mut recipe.pod, &rules);
            }
        } else if random.percent(50) {
            let rules = rules(random);
            for recipe in recipes {
                let weight = i32::try_from(random.between(1, 100)).unwrap_or(1);
                prefer(&mut recipe.pod, &rules, weight);
            }
        }
    }
    let singles = match random.percent(50) {
        true => SINGLE_PODS,
        false => 0,
    };
    for number in 0..singles {
        let at_ms = *random.pick(&times) + random.below(2_000);
        let pod = single(number, random);
        arrivals.push((at_ms, Arrival::Gang(None, vec![pod])));
    }
    arrivals.sort_by_key(|(at_ms, _)| *at_ms);
}

/// A pod of one CPU that would rather be near some pods or far from others, or both.
fn single(number: u64, random: &mut Random) -> Recipe {
    let name = format!("single-{number}");
    let mut pod = pod(&name, NONE, 0, 1, 0);
    let labels = vec![(APP.into(), (*random.pick(&APPS)).into())];
    pod.labels = PodLabels::new(&labels, &name, None);
    pod.queue = Some((*random.pick(&QUEUES)).into());
    let mut one = |percent| {
        let (key, app) = (*random.pick(&LEVELS), *random.pick(&APPS));
        random.percent(percent).then_some((key, app))
    };
    let wishes = Drawn {
        affinity: one(40),
        anti_affinity: one(70),
        spread: None,
        bounds: (1, 1),
    };
    let weight = i32::try_from(random.between(1, 100)).unwrap_or(1);
    prefer(&mut pod, &wishes, weight);
    Recipe {
        pod,
        runtime_ms: None,
        same_name: false,
        farewell: None,
    }
}

/// The rules that are drawn for a gang: of each its node label and the app that it selects.
struct Drawn {
    affinity: Option<(&'static str, &'static str)>,
    anti_affinity: Option<(&'static str, &'static str)>,
    spread: Option<(&'static str, &'static str)>,
    /// `maxSkew` and `minDomains`.
    bounds: (u32, u32),
}

fn rules(random: &mut Random) -> Drawn {
    let mut one = |percent| {
        let key = *random.pick(&LEVELS);
        let app = *random.pick(&APPS);
        random.percent(percent).then_some((key, app))
    };
    let (affinity, anti_affinity, spread) = (one(25), one(60), one(30));
    let mut bound = || u32::try_from(random.between(1, 3)).unwrap_or(1);
    Drawn {
        affinity,
        anti_affinity,
        spread,
        bounds: (bound(), bound()),
    }
}

fn give(pod: &mut PodFacts, drawn: &Drawn) {
    let relations = relations(pod, drawn);
    if !relations.is_empty() {
        Arc::make_mut(&mut pod.shape).relations = Some(Box::new(relations));
    }
}

/// Has a pod prefer what the rules would require.
fn prefer(pod: &mut PodFacts, drawn: &Drawn, weight: i32) {
    let relations = relations(pod, drawn);
    let weighted = |terms: Vec<PodTerm>, weight: i32| {
        let terms = terms.into_iter();
        terms.map(move |term| PreferredPods {
            weight,
            topology_key: term.topology_key,
            selection: term.selection,
        })
    };
    let near = weighted(relations.affinity, weight);
    let preferences = Preferences {
        namespace: relations.namespace,
        nodes: Vec::new(),
        pods: near
            .chain(weighted(relations.anti_affinity, -weight))
            .collect(),
        spread: relations.spread,
        ..Preferences::default()
    };
    if !preferences.is_empty() {
        Arc::make_mut(&mut pod.shape).preferences = Some(Box::new(preferences));
    }
}

fn relations(pod: &PodFacts, drawn: &Drawn) -> Relations {
    let own = |app: &str| {
        let value = pod.labels.value(APP, &pod.name, pod.owner.as_ref());
        value.as_deref() == Some(app)
    };
    let labels = |app: &str| LabelSelector {
        match_labels: vec![(APP.into(), app.into())],
        match_expressions: Vec::new(),
    };
    let term = |(key, app): (&str, &str)| PodTerm {
        topology_key: key.into(),
        selection: PodSelection {
            namespaces: vec![NAMESPACE.into()],
            namespace_selector: None,
            labels: Some(labels(app)),
        },
        selects_own_labels: own(app),
    };
    let (max_skew, min_domains) = drawn.bounds;
    let rule = |(key, app): (&str, &str)| SpreadRule {
        topology_key: key.into(),
        max_skew,
        min_domains,
        labels: Some(labels(app)),
        selects_own_labels: own(app),
        honors_affinity: true,
        honors_taints: false,
    };
    Relations {
        namespace: NAMESPACE.into(),
        affinity: drawn.affinity.map(term).into_iter().collect(),
        anti_affinity: drawn.anti_affinity.map(term).into_iter().collect(),
        spread: drawn.spread.map(rule).into_iter().collect(),
    }
}
