//! Namespaces and PriorityClasses.

use super::problems::Problems;
use super::{Converter, Watched, identity, limits, pod};
use crate::kube::objects::{Meta, Namespace, PriorityClass};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{NamespaceFacts, PriorityClassFacts};

impl Watched for Namespace {
    const KIND: Kind = Kind::Namespace;
    const PATH: &'static str = "/api/v1/namespaces";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::Namespace(self.metadata.name.clone())
    }

    fn convert(self, _converter: &mut Converter) -> Option<Object> {
        let uid = identity::uid("Namespace", &self.metadata);
        let mut problems = Problems::default();
        let mut labels = self.metadata.labels.0;
        problems.at_most(limits::PAIRS, &labels, "metadata.labels");
        labels.truncate(limits::PAIRS);
        Some(Object::Namespace(NamespaceFacts {
            name: self.metadata.name,
            uid,
            labels,
            problems: problems.into_vec(),
        }))
    }
}

impl Watched for PriorityClass {
    const KIND: Kind = Kind::PriorityClass;
    const PATH: &'static str = "/apis/scheduling.k8s.io/v1/priorityclasses";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::PriorityClass(self.metadata.name.clone())
    }

    fn convert(self, _converter: &mut Converter) -> Option<Object> {
        Some(Object::PriorityClass(PriorityClassFacts {
            name: self.metadata.name,
            value: pod::saturated(self.value),
            never_preempts: self.preemption_policy.as_deref() == Some("Never"),
        }))
    }
}
