//! A captured request: how a recorded delivery is kept in a file, for `send`, `explain`, the trigger test
//! and fixtures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A recorded HTTP request; at most one of `body` and `body_base64`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapturedRequest {
    /// The method
    pub method: String,
    /// The absolute URL as the provider called it
    pub url: String,
    /// Header names in any case
    #[serde(default)]
    pub headers: BTreeMap<String, HeaderValues>,
    /// The body as text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body as Base64 with padding, where it is not text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

/// One value, or several of a repeated header in their order
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HeaderValues {
    /// The usual case
    One(String),
    /// A repeated header
    Many(Vec<String>),
}

impl HeaderValues {
    /// Every value in order
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values.as_slice(),
        }
        .iter()
        .map(String::as_str)
    }
}
