//! PodDisruptionBudgets.

use super::problems::Problems;
use super::{Converter, Watched, identity, selector};
use crate::kube::objects::{DisruptionBudget, DisruptionBudgetStatus, Meta};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::DisruptionBudgetFacts;

impl Watched for DisruptionBudget {
    const KIND: Kind = Kind::DisruptionBudget;
    const PATH: &'static str = "/apis/policy/v1/poddisruptionbudgets";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        let (namespace, name) = (&self.metadata.namespace, &self.metadata.name);
        ObjectKey::DisruptionBudget(namespace.clone(), name.clone())
    }

    fn convert(self, _converter: &mut Converter) -> Option<Object> {
        Some(Object::DisruptionBudget(disruption_budget(self)))
    }
}

/// The facts of a PodDisruptionBudget. One whose selector cannot be read in full selects no pod:
/// the API server still has the last word about each eviction.
pub(super) fn disruption_budget(budget: DisruptionBudget) -> DisruptionBudgetFacts {
    let mut problems = Problems::default();
    let allowed = allowed(budget.metadata.generation, &budget.status);
    let selector = budget.spec.selector;
    let selector =
        selector.map(|selector| selector::label_selector(selector, "spec.selector", &mut problems));
    let problems = problems.into_vec();
    DisruptionBudgetFacts {
        uid: identity::uid("PodDisruptionBudget", &budget.metadata),
        namespace: budget.metadata.namespace,
        name: budget.metadata.name,
        selector: selector.filter(|_| problems.is_empty()),
        allowed,
        problems,
    }
}

/// What the API server allows; nothing while the status is of an older spec, or is missing.
fn allowed(generation: i64, status: &DisruptionBudgetStatus) -> u32 {
    if status.observed_generation.unwrap_or(0) < generation {
        return 0;
    }
    let allowed = status.disruptions_allowed.unwrap_or(0).max(0);
    u32::try_from(allowed).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_batch_policies::facts::{LabelSelector, MatchOperator};
    use serde_json::{Value, json};

    fn facts(value: Value) -> DisruptionBudgetFacts {
        disruption_budget(serde_json::from_value(value).unwrap())
    }

    fn full() -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "vision", "generation": 3,
                         "uid": "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234"},
            "spec": {
                "minAvailable": "50%",
                "selector": {
                    "matchLabels": {"app": "web"},
                    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
                },
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
            "status": {"observedGeneration": 3, "disruptionsAllowed": 2, "currentHealthy": 4,
                       "desiredHealthy": 2, "expectedPods": 4, "disruptedPods": {"web-0": "x"}},
        })
    }

    #[test]
    fn everything_that_counts_is_read() {
        let facts = facts(full());
        assert_eq!((&*facts.namespace, &*facts.name), ("vision", "web"));
        assert_eq!(facts.allowed, 2);
        assert_eq!(facts.problems, []);
        let selector = facts.selector.unwrap();
        assert_eq!(selector.match_labels, [("app".into(), "web".into())]);
        let [requirement] = &*selector.match_expressions else {
            panic!("{selector:?}");
        };
        assert_eq!(requirement.operator, MatchOperator::In);
    }

    #[test]
    fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
        let selector = |spec: Value| facts(json!({"spec": spec})).selector;
        for spec in [json!(null), json!({}), json!({"selector": null})] {
            assert_eq!(selector(spec), None);
        }
        let everything = Some(LabelSelector::default());
        assert_eq!(selector(json!({"selector": {}})), everything);
        let nulls = json!({"matchLabels": null, "matchExpressions": null});
        assert_eq!(selector(json!({"selector": nulls})), everything);
    }

    #[test]
    fn nothing_is_allowed_by_a_status_that_is_missing_old_or_negative() {
        for (status, expected) in [
            (json!(null), 0),
            (json!({}), 0),
            (json!({"disruptionsAllowed": 5}), 0),
            (json!({"observedGeneration": 2, "disruptionsAllowed": 5}), 0),
            (json!({"observedGeneration": 3}), 0),
            (
                json!({"observedGeneration": 3, "disruptionsAllowed": -1}),
                0,
            ),
            (
                json!({"observedGeneration": 3, "disruptionsAllowed": i64::MIN}),
                0,
            ),
            (json!({"observedGeneration": 4, "disruptionsAllowed": 5}), 5),
            (
                json!({"observedGeneration": 3, "disruptionsAllowed": i64::MAX}),
                u32::MAX,
            ),
        ] {
            let mut value = full();
            value["status"] = status.clone();
            assert_eq!(facts(value).allowed, expected, "{status}");
        }
    }

    #[test]
    fn a_selector_that_cannot_be_read_selects_nothing_and_says_why() {
        let requires = |key, operator, values: Vec<String>| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let many = || (0..2_000).map(|number| number.to_string()).collect();
        let large: Value = (0..2_000)
            .map(|number| (number.to_string(), json!("x")))
            .collect();
        for (selector, field) in [
            (
                requires("a", "Near", vec![]),
                "spec.selector.matchExpressions[0].operator",
            ),
            (
                requires("a", "Gt", vec!["5".to_owned()]),
                "spec.selector.matchExpressions[0].operator",
            ),
            (
                requires("a", "In", vec![]),
                "spec.selector.matchExpressions[0].values",
            ),
            (
                requires("", "Exists", vec![]),
                "spec.selector.matchExpressions[0].key",
            ),
            (
                requires("a", "In", many()),
                "spec.selector.matchExpressions[0].values",
            ),
            (json!({"matchLabels": large}), "spec.selector.matchLabels"),
        ] {
            let mut value = full();
            value["spec"]["selector"] = selector;
            let facts = facts(value);
            assert_eq!(facts.selector, None, "{field}");
            assert_eq!(&*facts.problems[0].field, field);
        }
    }

    #[test]
    fn numbers_that_no_budget_has_are_refused_where_they_are_read() {
        for number in ["1e30", "99999999999999999999", "\"2\"", "[]"] {
            let text = format!("{{\"status\": {{\"disruptionsAllowed\": {number}}}}}");
            assert!(
                serde_json::from_str::<DisruptionBudget>(&text).is_err(),
                "{number}"
            );
        }
    }
}
