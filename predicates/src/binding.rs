//! A binding: which members of each collection a trigger's resources may be, and which origins its URLs
//! may have. Its digest stands in every event and subscription.

use std::collections::BTreeMap;

use postern_contract::canonical::{self, NotCanonical};
use postern_contract::{Digest, Document, Kind, Scalar, Value};
use serde::Serialize;

use crate::declaration::{below, literal, members};
use crate::invalid::Invalid;
use crate::number::Number;
use crate::url::is_origin;

/// Collection to members
pub type Resources = BTreeMap<String, Vec<Scalar>>;

/// Grants and origins
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    resources: Resources,
    resource_origins: Vec<String>,
}

/// What one binding grants and another does not
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wider {
    /// A member of a collection
    #[error("`{1}` of `{0}` is not granted")]
    Resource(String, String),
    /// An origin
    #[error("the origin `{0}` is not granted")]
    Origin(String),
}

impl Binding {
    /// Refuses members outside of the bounds of literals, and origins that are not written canonically
    pub fn new(resources: Resources, origins: Vec<String>) -> Result<Self, Invalid> {
        for (collection, members) in &resources {
            let path = below("/resources", collection);
            for member in members {
                crate::declaration::Literal::of(member).checked(&path)?;
            }
        }
        if let Some(bad) = origins.iter().find(|origin| !is_origin(origin)) {
            return Err(Invalid::at(
                "/resourceOrigins",
                format!("`{bad}` is no origin: want `https://host`, lower case, without a path"),
            ));
        }
        let mut resources = resources;
        for member in resources.values_mut().flatten() {
            *member = plain(member.clone());
        }
        Ok(Self {
            resources,
            resource_origins: origins,
        })
    }

    /// Reads `{resources: {collection: [scalar, …]}}`
    pub fn parse(document: &Document) -> Result<Resources, Invalid> {
        if let Some(at) = document.repeated_key() {
            return Err(Invalid::at(at, "the key stands twice"));
        }
        let mut found = Resources::new();
        for (key, value) in members(document.root(), "")? {
            if key != "resources" {
                return Err(Invalid::at(
                    "",
                    format!("unknown key `{key}`: want resources"),
                ));
            }
            for (collection, value) in members(value, "/resources")? {
                let path = below("/resources", collection);
                let items = value
                    .items()
                    .ok_or_else(|| Invalid::at(&path, "want a list of scalars"))?;
                let scalars = items
                    .map(|item| {
                        literal(item, &path)?;
                        scalar(item).ok_or_else(|| Invalid::at(&path, "null is no resource"))
                    })
                    .collect::<Result<_, _>>()?;
                found.insert(collection.to_owned(), scalars);
            }
        }
        Ok(found)
    }

    /// The members of a collection
    pub fn members(&self, collection: &str) -> &[Scalar] {
        self.resources.get(collection).map_or(&[], Vec::as_slice)
    }

    /// Every collection
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The origins
    pub fn origins(&self) -> &[String] {
        &self.resource_origins
    }

    /// The digest of its RFC 8785 form
    pub fn digest(&self) -> Result<Digest, NotCanonical> {
        canonical::digest(self)
    }

    /// Whether `outer` grants everything that this does
    pub fn within(&self, outer: &Self) -> Result<(), Wider> {
        for (collection, members) in &self.resources {
            let granted = outer.members(collection);
            if let Some(wider) = members.iter().find(|m| !granted.contains(m)) {
                let member = serde_json::to_string(wider).unwrap_or_default();
                return Err(Wider::Resource(collection.clone(), member));
            }
        }
        match (self.resource_origins.iter()).find(|o| !outer.resource_origins.contains(o)) {
            Some(origin) => Err(Wider::Origin(origin.clone())),
            None => Ok(()),
        }
    }
}

/// One form a value: a number without a fraction is an integer
fn plain(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::Number(f) => match Number::read(&format!("{f:e}")).safe_integer() {
            Some(integer) => Scalar::Integer(integer),
            None => Scalar::Number(f),
        },
        other => other,
    }
}

/// A value within the bounds of literals; `None` for what is none, and for `null`
pub(crate) fn scalar(value: Value<'_>) -> Option<Scalar> {
    match value.kind() {
        Kind::Boolean => value.as_bool().map(Scalar::Boolean),
        Kind::String => value.as_str().map(|text| Scalar::String(text.to_owned())),
        Kind::Number => {
            let exact = Number::read(value.number_text()?);
            match exact.safe_integer() {
                Some(integer) => Some(Scalar::Integer(integer)),
                None if exact.is_integer() => None,
                None => exact.exact_binary64().map(Scalar::Number),
            }
        }
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}
