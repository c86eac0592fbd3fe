//! The configuration file with every default, as text.

use super::ConfigurationFile;
use anyhow::Context;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The configuration file with every default, and with a comment on every key.
///
/// # Errors
/// The serializer's, which the defaults do not meet.
pub fn print_defaults() -> anyhow::Result<String> {
    let schema = SchemaSettings::default()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<ConfigurationFile>()
        .to_value();
    let mut text = String::new();
    let mut parents: Vec<&Value> = vec![&schema];
    let yaml = serde_saphyr::to_string(&ConfigurationFile::default())?;
    for line in yaml.lines() {
        let indent = line.len() - line.trim_start().len();
        let (key, _) = line.split_once(':').context("a line without a key")?;
        parents.truncate(1 + indent / 2);
        let parent = parents.last().context("a key without a parent")?;
        let field = &parent["properties"][key.trim()];
        let description = field["description"]
            .as_str()
            .context("an undocumented key")?;
        if !text.is_empty() && indent == 0 {
            text.push('\n');
        }
        for comment in description.lines() {
            text.push_str(&format!("{:indent$}# {comment}\n", ""));
        }
        text.push_str(line);
        text.push('\n');
        parents.push(field);
    }
    Ok(text)
}
