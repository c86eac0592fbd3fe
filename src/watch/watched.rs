//! What the watcher needs of a kind, until `crate::objects` brings it.

use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Debug, Default)]
pub(crate) struct Converter;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) name: Box<str>,
    pub(crate) resource_version: Box<str>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: Box<str>,
    #[serde(rename = "continue")]
    pub(crate) continue_token: Box<str>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub(crate) struct ListOf<T> {
    #[serde(default)]
    pub(crate) metadata: ListMeta,
    pub(crate) items: Vec<T>,
}

pub(crate) trait Watched: DeserializeOwned + Send + 'static {
    const KIND: Kind;
    const PATH: &'static str;
    fn meta(&self) -> &Meta;
    fn key(&self) -> ObjectKey;
    fn convert(self, converter: &mut Converter) -> Option<Object>;
}
