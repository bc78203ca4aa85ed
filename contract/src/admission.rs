//! An admission: the file in which an operator, having reviewed a subscription, says where its events may
//! go. It binds a digest, so a subscription that changes has to be admitted anew.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Name, Timestamp};

/// One admitted subscription
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Admission {
    /// The subscription that was reviewed
    pub subscription_digest: Digest,
    /// `owner/name` of the repository whose workflow subscribes; equal to the subscription's
    pub repository: String,
    /// The GitHub App's id, where source or destination is an App's
    pub app: Option<u64>,
    /// The App's installation id, likewise
    pub installation: Option<u64>,
    /// The source whose deliveries may match
    pub source: Name,
    /// The destination that gets the events
    pub destination: Name,
    /// Who opted the repository in
    pub opt_in: OptIn,
    /// When the admission ends; absent: when it is revoked
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// The repository's own consent
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptIn {
    /// Who, as the operator knows them
    pub by: String,
    /// When
    pub at: Timestamp,
}
