//! A subscription: the frozen statement that one workflow wants one trigger's events, narrowed by chosen
//! filters. It names digests, so that nothing it rests on can change beneath it, and it claims nothing
//! live: `operational` is always false.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical::{self, NotCanonical};
use crate::{API_VERSION, Digest, Name};

/// A string, boolean or number; integers within ±(2^53−1), other numbers exact in binary64
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`
    Boolean(bool),
    /// A whole number
    Integer(i64),
    /// A number with a fraction
    Number(f64),
    /// A string
    String(String),
}

/// What a consumer chose for a filter: one value (`equals`) or 1 to 100 of them (`in`)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FilterChoice {
    /// Equal to this
    One(Scalar),
    /// Equal to one of these
    AnyOf(Vec<Scalar>),
}

/// A frozen subscription; its digest is taken of its RFC 8785 form
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subscription {
    /// [`API_VERSION`]
    pub api_version: String,
    /// `Subscription`
    pub kind: String,
    /// Path of the workflow in its repository
    pub workflow: String,
    /// `owner/name` of the workflow's repository; null where the compiler was not told it, and then no
    /// admission can name it
    pub repository: Option<String>,
    /// The connector's id
    pub connector: Name,
    /// The trigger's name
    pub trigger: Name,
    /// The digest of the frozen trigger
    pub trigger_digest: Digest,
    /// The verification profile
    pub profile: String,
    /// Its digest
    pub profile_digest: Digest,
    /// The digest of the grants and origins
    pub binding: Digest,
    /// The chosen filters, by name
    pub filters: BTreeMap<String, FilterChoice>,
    /// Always false: compiling activates nothing
    pub operational: bool,
}

/// A document that is no subscription of this version
#[derive(Debug, thiserror::Error)]
pub enum NotASubscription {
    /// Another kind or version
    #[error("not a subscription: `{0}` is `{1}`")]
    Other(&'static str, String),
    /// It claims to be live
    #[error("not a subscription: `operational` is true: compiling activates nothing")]
    Operational,
}

impl Subscription {
    /// Refuses another version or kind, and a claim of being live
    pub fn check(&self) -> Result<(), NotASubscription> {
        if self.api_version != API_VERSION {
            return Err(NotASubscription::Other(
                "apiVersion",
                self.api_version.clone(),
            ));
        }
        if self.kind != "Subscription" {
            return Err(NotASubscription::Other("kind", self.kind.clone()));
        }
        if self.operational {
            return Err(NotASubscription::Operational);
        }
        Ok(())
    }

    /// The digest that an admission names
    pub fn digest(&self) -> Result<Digest, NotCanonical> {
        canonical::digest(self)
    }
}
