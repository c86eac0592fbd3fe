//! Namespaces and PriorityClasses.

use super::{Converter, limits, pod};
use crate::objects::{Meta, Namespace, PriorityClass, Watched};
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
        let mut labels = self.metadata.labels.0;
        // Facts of a namespace carry no problems; the first labels by name are as good as any.
        labels.truncate(limits::PAIRS);
        Some(Object::Namespace(NamespaceFacts {
            name: self.metadata.name,
            labels,
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
