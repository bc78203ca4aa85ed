//! The catalogue: every profile that is compiled in, by id. Adding a provider adds a data file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::profile::Profile;

static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/catalog.rs"));
static EMBEDDED: LazyLock<Result<Catalogue, NotAProfile>> =
    LazyLock::new(|| Catalogue::read(FILES));

/// Profiles by id
#[derive(Debug)]
pub struct Catalogue {
    profiles: BTreeMap<String, Profile>,
    aliases: BTreeMap<String, String>,
}

/// A data file that is no profile
#[derive(Clone, Debug, thiserror::Error)]
#[error("catalog/{file}.toml: {why}")]
pub struct NotAProfile {
    file: String,
    why: String,
}

impl Catalogue {
    /// The profiles that are compiled in. A test holds every file to load; one that does not leaves the
    /// catalogue empty, so that nothing verifies.
    pub fn embedded() -> &'static Self {
        static NONE: Catalogue = Catalogue {
            profiles: BTreeMap::new(),
            aliases: BTreeMap::new(),
        };
        EMBEDDED.as_ref().unwrap_or(&NONE)
    }

    /// Why the embedded catalogue does not load, if it does not
    pub fn fault() -> Option<&'static NotAProfile> {
        EMBEDDED.as_ref().err()
    }

    fn read(files: &[(&str, &str)]) -> Result<Self, NotAProfile> {
        let mut catalogue = Self {
            profiles: BTreeMap::new(),
            aliases: BTreeMap::new(),
        };
        for (id, text) in files {
            let fail = |why: String| NotAProfile {
                file: (*id).to_owned(),
                why,
            };
            let profile = Profile::read(id, text).map_err(fail)?;
            for alias in profile.aliases() {
                if let Some(other) = (catalogue.aliases).insert(alias.clone(), (*id).to_owned()) {
                    return Err(fail(format!("the alias `{alias}` is `{other}`'s")));
                }
            }
            catalogue.profiles.insert((*id).to_owned(), profile);
        }
        Ok(catalogue)
    }

    /// The profile of an id or alias
    pub fn get(&self, id: &str) -> Option<&Profile> {
        let id = self.aliases.get(id).map_or(id, String::as_str);
        self.profiles.get(id)
    }

    /// Every profile, by id
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_data_file_loads() {
        assert!(Catalogue::fault().is_none(), "{:?}", Catalogue::fault());
        assert_eq!(Catalogue::embedded().iter().count(), FILES.len());
    }
}
