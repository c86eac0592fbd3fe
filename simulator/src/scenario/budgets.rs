//! Disruption budgets, which guard pods in some worlds. They are drawn from a sequence of their
//! own, so that worlds without them are not changed by this module.

use super::{APP, APPS, Arrival, NONE};
use crate::objects::NAMESPACE;
use crate::random::Random;
use gpu_batch_policies::facts::{
    DisruptionBudgetFacts, LabelSelector, MatchOperator, SelectorRequirement, UnixMs,
};

/// In how many percent of the worlds there are budgets.
const WORLDS_PERCENT: u64 = 25;
const POD_GROUP: &str = "gpu-batch.io/pod-group";

/// Adds the budgets of a world: they come, change their selectors, and go.
pub(crate) fn guard(
    arrivals: &mut Vec<(UnixMs, Arrival)>,
    random: &mut Random,
    start_ms: UnixMs,
    span_ms: u64,
) {
    if !random.percent(WORLDS_PERCENT) {
        return;
    }
    for number in 0..random.between(1, 3) {
        let name = format!("b{number}");
        let min_available = *random.pick(&[0, 2, 20, 20]);
        let mut at_ms = start_ms + random.below(span_ms / 3);
        let mut later_ms = |random: &mut Random| {
            at_ms = (at_ms + random.below(10_000)).min(start_ms + span_ms);
            at_ms
        };
        for _ in 0..random.between(1, 2) {
            let budget = budget(&name, random);
            let arrival = Arrival::Guarded(budget, min_available);
            arrivals.push((later_ms(random), arrival));
        }
        if random.percent(30) {
            let arrival = Arrival::Unguarded(name.into());
            arrivals.push((later_ms(random), arrival));
        }
    }
}

fn budget(name: &str, random: &mut Random) -> DisruptionBudgetFacts {
    DisruptionBudgetFacts {
        uid: NONE,
        namespace: NAMESPACE.into(),
        name: name.into(),
        selector: selector(random),
        allowed: 0,
        problems: Vec::new(),
    }
}

/// Selects nothing, everything, one gang, some gangs, or contradicts itself.
fn selector(random: &mut Random) -> Option<LabelSelector> {
    let mut selector = LabelSelector::default();
    let app = *random.pick(&APPS);
    match random.below(7) {
        0 => return None,
        1 => {}
        2 | 3 => {
            let gang = format!("g{}", random.below(10));
            selector.match_labels = vec![(POD_GROUP.into(), gang.into())];
        }
        4 => selector.match_labels = vec![(APP.into(), app.into())],
        5 => selector.match_expressions = vec![requirement(APP, MatchOperator::NotIn, &[app])],
        _ => {
            selector.match_labels = vec![(APP.into(), app.into())];
            let absent = requirement(APP, MatchOperator::DoesNotExist, &[]);
            selector.match_expressions = vec![absent];
        }
    }
    Some(selector)
}

fn requirement(key: &str, operator: MatchOperator, values: &[&str]) -> SelectorRequirement {
    SelectorRequirement {
        key: key.into(),
        operator,
        values: values.iter().map(|value| (*value).into()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, guard};
    use crate::random::Random;

    #[test]
    fn there_is_something_of_every_sort() {
        let (mut worlds, mut nothing, mut everything, mut some, mut gone) = (0, 0, 0, 0, 0);
        for seed in 0..2_000 {
            let mut arrivals = Vec::new();
            guard(&mut arrivals, &mut Random::new(seed), 1_000, 500);
            worlds += u32::from(!arrivals.is_empty());
            for (at_ms, arrival) in arrivals {
                assert!((1_000..=1_500).contains(&at_ms));
                let count = match arrival {
                    Arrival::Guarded(budget, _) => match budget.selector {
                        None => &mut nothing,
                        Some(selector) if selector == Default::default() => &mut everything,
                        Some(_) => &mut some,
                    },
                    _ => &mut gone,
                };
                *count += 1;
            }
        }
        let counts = [worlds, nothing, everything, some, gone];
        let enough = counts.iter().zip([400, 150, 150, 700, 200]);
        assert!(enough.clone().all(|it| *it.0 > it.1), "{counts:?}");
    }
}
