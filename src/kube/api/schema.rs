//! Pieces of schema that more than one resource uses.

use schemars::{Schema, SchemaGenerator, json_schema};

/// CEL: a DNS subdomain, as objects are named.
pub(super) const NAME: &str =
    r"self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')";
/// The message where [`NAME`] does not hold.
pub(super) const NAME_MESSAGE: &str =
    "must be the name of an object: lower case letters, digits, - and .";
/// CEL: a DNS label.
pub(super) const LABEL: &str = "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')";
/// The message where [`LABEL`] does not hold.
pub(super) const LABEL_MESSAGE: &str =
    "must be of lower case letters, digits and -, beginning and ending with a letter or digit";
/// CEL: a qualified name, as labels and resources are named.
pub(super) const QUALIFIED: &str = r"self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')";

/// Lets the value be `null`, which means the same as leaving it out.
fn nullable(mut schema: Schema) -> Schema {
    schema.insert("nullable".to_owned(), true.into());
    schema
}

/// A Kubernetes quantity that is not negative.
pub(super) fn amount(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "maxLength": 32,
        "nullable": false,
        "x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": [
            {
                "rule": "isQuantity(string(self))",
                "message": "must be a quantity such as 16, 500m or 64Gi",
            },
            {
                "rule": "!isQuantity(string(self)) \
                         || !quantity(string(self)).isLessThan(quantity('0'))",
                "message": "must not be negative",
            },
        ],
    })
}

/// [`amount`], or `null`.
pub(super) fn optional_amount(generator: &mut SchemaGenerator) -> Schema {
    nullable(amount(generator))
}

/// Amounts by resource, of a status.
pub(super) fn amounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-int-or-string": true },
    })
}

/// A label selector whose operators have the values that they need, or `null`. The API server
/// itself would take any.
pub(super) fn optional_label_selector(_: &mut SchemaGenerator) -> Schema {
    let with_values = "['In', 'NotIn'].exists(o, o == self.operator)";
    nullable(json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {
                "description": "Labels that must be there, with these values.",
                "type": "object",
                "additionalProperties": { "type": "string", "maxLength": 63 },
                "maxProperties": 64,
            },
            "matchExpressions": {
                "description": "Requirements on labels. All must hold, as all of matchLabels.",
                "type": "array",
                "maxItems": 64,
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "description": "The label.",
                            "type": "string",
                            "maxLength": 317,
                            "x-kubernetes-validations": [
                                { "rule": QUALIFIED, "message": "must be the key of a label" },
                            ],
                        },
                        "operator": {
                            "description": "How the label's value is compared with the values.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "At least one for In and NotIn, none for the others.",
                            "type": "array",
                            "maxItems": 256,
                            "items": { "type": "string", "maxLength": 63 },
                        },
                    },
                    "x-kubernetes-validations": [{
                        "rule": format!(
                            "({with_values}) == (has(self.values) && self.values.size() > 0)"
                        ),
                        "message": "In and NotIn need values, Exists and DoesNotExist take none",
                    }],
                },
            },
        },
    }))
}
