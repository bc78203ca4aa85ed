//! Freezing: a compiled declaration, the profile's digest and the grants become one RFC 8785 document with
//! a digest; loading checks all of it again and takes no byte that it would not have written itself.

use bytes::Bytes;
use postern_contract::{API_VERSION, Digest, Document, canonical};
use serde::Serialize;

use super::{Rules, Trigger};
use crate::binding::{Binding, Resources};
use crate::declaration::{members, need, shape, to_json};
use crate::invalid::Invalid;

/// The most bytes of a frozen trigger
const MAX_BYTES: usize = 4 << 20;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Frozen<'a> {
    api_version: &'static str,
    kind: &'static str,
    declaration: serde_json::Value,
    profile_digest: Digest,
    grants: &'a Resources,
}

/// Bytes that are no frozen trigger
#[derive(Debug, thiserror::Error)]
pub enum NotATrigger {
    /// Too large
    #[error("a frozen trigger of {0} bytes: at most {MAX_BYTES}")]
    Bytes(usize),
    /// Not JSON
    #[error(transparent)]
    Json(#[from] postern_contract::MalformedBody),
    /// Not a trigger, or not one that compiles
    #[error("{0}")]
    Invalid(#[from] Invalid),
    /// Not the canonical bytes
    #[error("not canonical JSON (RFC 8785): the document was changed after it was compiled")]
    NotCanonical,
}

impl Trigger {
    /// Compiles a declaration and freezes it with the profile's digest and the members that each
    /// collection is bound to
    pub fn compile(
        declaration: &Document,
        profile_digest: Digest,
        grants: Resources,
    ) -> Result<Self, Invalid> {
        Self::freeze(declaration.root(), profile_digest, grants)
    }

    fn freeze(
        declaration: postern_contract::Value<'_>,
        profile_digest: Digest,
        grants: Resources,
    ) -> Result<Self, Invalid> {
        let rules = Rules::compile(declaration)?;
        let binding = Binding::new(grants, rules.origins.clone())?;
        let canonical = |e: canonical::NotCanonical| Invalid::at("", e.to_string());
        let declared = to_json(declaration);
        let rules_digest = canonical::digest(&(&declared, profile_digest)).map_err(canonical)?;
        let document = canonical::to_vec(&Frozen {
            api_version: API_VERSION,
            kind: "Trigger",
            declaration: declared,
            profile_digest,
            grants: binding.resources(),
        })
        .map_err(canonical)?;
        if document.len() > MAX_BYTES {
            // It could never be loaded
            let message = format!("{} bytes when frozen: at most {MAX_BYTES}", document.len());
            return Err(Invalid::at("", message));
        }
        Ok(Self {
            rules,
            profile_digest,
            binding_digest: binding.digest().map_err(canonical)?,
            binding,
            rules_digest,
            digest: Digest::of(&document),
            document: document.into(),
        })
    }

    /// Loads a frozen trigger: compiles its declaration again and compares every byte
    pub fn load(bytes: Bytes) -> Result<Self, NotATrigger> {
        if bytes.len() > MAX_BYTES {
            return Err(NotATrigger::Bytes(bytes.len()));
        }
        let document = Document::parse(bytes.clone())?;
        let root = document.root();
        let keys = [
            "apiVersion",
            "kind",
            "declaration",
            "profileDigest",
            "grants",
        ];
        shape(root, "", &keys, &[])?;
        for (key, wanted) in [("apiVersion", API_VERSION), ("kind", "Trigger")] {
            if need(root, key, "")?.as_str() != Some(wanted) {
                return Err(Invalid::at(&format!("/{key}"), format!("want `{wanted}`")).into());
            }
        }
        let digest = need(root, "profileDigest", "")?
            .as_str()
            .unwrap_or_default();
        let digest = (digest.parse()).map_err(|e: postern_contract::digest::NotADigest| {
            Invalid::at("/profileDigest", e.to_string())
        })?;
        let mut grants = Resources::new();
        for (collection, value) in members(need(root, "grants", "")?, "/grants")? {
            let scalars = value.items().into_iter().flatten();
            let scalars = scalars.filter_map(crate::binding::scalar).collect();
            grants.insert(collection.to_owned(), scalars);
        }
        let trigger = Self::freeze(need(root, "declaration", "")?, digest, grants)?;
        // What was dropped or read leniently above shows here
        if trigger.document != bytes {
            return Err(NotATrigger::NotCanonical);
        }
        Ok(trigger)
    }
}
