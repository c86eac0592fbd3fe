//! Lists, taken apart.

use super::{RefusedDocument, text, title};
use serde_json::Value;

/// The objects of a list, of lists in it, and so on; one object alone; nothing of `null`.
pub(super) fn flattened(value: Value) -> Result<Vec<Value>, RefusedDocument> {
    let mut open = vec![value];
    let mut flat = Vec::new();
    while let Some(mut value) = open.pop() {
        if value.is_null() {
            continue;
        }
        let title = title(&value);
        let kind = text(&value, "kind").to_owned();
        let Some(of) = kind.strip_suffix("List") else {
            flat.push(value);
            continue;
        };
        let api_version = text(&value, "apiVersion").to_owned();
        match value.get_mut("items").map(Value::take) {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                let items = items.into_iter().rev();
                open.extend(items.map(|item| typed_item(item, of, &api_version)));
            }
            Some(_) => {
                return Err(RefusedDocument {
                    object: title,
                    field: "items".to_owned(),
                    message: "is not a list".to_owned(),
                });
            }
        }
    }
    Ok(flat)
}

/// Items of a `PodList` do not say that they are Pods.
fn typed_item(mut item: Value, kind: &str, api_version: &str) -> Value {
    if let Value::Object(fields) = &mut item
        && !kind.is_empty()
    {
        let entries = [("kind", kind), ("apiVersion", api_version)];
        for (name, text) in entries {
            fields.entry(name).or_insert_with(|| text.into());
        }
    }
    item
}
