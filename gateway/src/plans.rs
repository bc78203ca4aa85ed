//! Loads the frozen documents that `postern compile --out` wrote, and the admissions beside them. A file
//! is taken only if its bytes are canonical and its digest is the one it is known by; a faulty file is
//! named, and nothing of the set is used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use postern_contract::fault::{Fault, Party};
use postern_contract::{Admission, Digest, Subscription, canonical};
use postern_predicates::Trigger;

use crate::files;

/// The most bytes of one frozen document
const MAX_DOCUMENT_BYTES: u64 = 4 << 20;

/// Everything that was compiled and reviewed, by digest
#[derive(Default)]
pub struct Plans {
    /// Triggers by their digest
    pub triggers: BTreeMap<Digest, Arc<Trigger>>,
    /// Subscriptions by their digest
    pub subscriptions: BTreeMap<Digest, Arc<Subscription>>,
    /// Admissions in the order of their files' names
    pub admissions: Vec<Arc<Admission>>,
}

/// A file of the set that cannot be used
#[derive(Debug, thiserror::Error)]
pub enum PlanFault {
    /// It cannot be read
    #[error("`{0}` cannot be read: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// It is no document of its kind
    #[error("`{0}` is no {1}: {2}")]
    Invalid(PathBuf, &'static str, String),
    /// Its bytes are not the canonical ones
    #[error("`{0}` is not canonical JSON (RFC 8785): it was changed after it was compiled")]
    NotCanonical(PathBuf),
    /// It is not what its name says
    #[error("`{0}` has the digest `{1}`, which its name does not say")]
    Misnamed(PathBuf, Digest),
    /// Two admissions say the same or contradict each other
    #[error(
        "`{0}` and `{1}` admit the same subscription from the same source to the same destination"
    )]
    AdmittedTwice(PathBuf, PathBuf),
}

impl Fault for PlanFault {
    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(..) => "plan-unreadable",
            Self::Invalid(..) => "plan-invalid",
            Self::NotCanonical(_) => "plan-not-canonical",
            Self::Misnamed(..) => "plan-misnamed",
            Self::AdmittedTwice(..) => "admitted-twice",
        }
    }
    fn fault(&self) -> Party {
        Party::Operator
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotCanonical(_) | Self::Misnamed(..) => {
                Some("run `postern compile --out` again and review what it wrote".to_owned())
            }
            Self::AdmittedTwice(..) => Some("remove one of the two files".to_owned()),
            _ => None,
        }
    }
}

impl Plans {
    /// Reads `plans/triggers`, `plans/subscriptions` and the admissions. A directory that does not exist
    /// counts as empty. Every fault is reported, not only the first.
    pub fn load(plans: &Path, admissions: &Path) -> Result<Self, Vec<PlanFault>> {
        let mut found = Self::default();
        let mut faults = Vec::new();
        for file in read_all(&plans.join("triggers"), &mut faults) {
            match trigger(&file) {
                Ok(trigger) => {
                    found.triggers.insert(trigger.digest(), Arc::new(trigger));
                }
                Err(fault) => faults.push(fault),
            }
        }
        for file in read_all(&plans.join("subscriptions"), &mut faults) {
            match subscription(&file) {
                Ok((digest, subscription)) => {
                    found.subscriptions.insert(digest, Arc::new(subscription));
                }
                Err(fault) => faults.push(fault),
            }
        }
        let mut named = BTreeMap::new();
        for file in read_all(admissions, &mut faults) {
            match admission(&file) {
                Ok(admission) => {
                    let what = (
                        admission.subscription_digest,
                        admission.source.clone(),
                        admission.destination.clone(),
                    );
                    match named.insert(what, file.path.clone()) {
                        Some(other) => faults.push(PlanFault::AdmittedTwice(other, file.path)),
                        None => found.admissions.push(Arc::new(admission)),
                    }
                }
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            Ok(found)
        } else {
            Err(faults)
        }
    }
}

struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// The `.json` files of a directory, by name
fn read_all(dir: &Path, faults: &mut Vec<PlanFault>) -> Vec<File> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(e) => {
            faults.push(PlanFault::Unreadable(dir.to_owned(), e));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| match files::read(&path, MAX_DOCUMENT_BYTES) {
            Ok(bytes) => Some(File { path, bytes }),
            Err(e) => {
                faults.push(PlanFault::Unreadable(path, e));
                None
            }
        })
        .collect()
}

fn trigger(file: &File) -> Result<Trigger, PlanFault> {
    let trigger = Trigger::load(file.bytes.clone().into())
        .map_err(|e| PlanFault::Invalid(file.path.clone(), "trigger", e.to_string()))?;
    let digest = trigger.digest();
    let name = file.path.file_stem().and_then(|s| s.to_str());
    if name != Some(&digest.hex()) {
        return Err(PlanFault::Misnamed(file.path.clone(), digest));
    }
    Ok(trigger)
}

fn subscription(file: &File) -> Result<(Digest, Subscription), PlanFault> {
    let invalid = |why: String| PlanFault::Invalid(file.path.clone(), "subscription", why);
    let subscription: Subscription =
        serde_json::from_slice(&file.bytes).map_err(|e| invalid(e.to_string()))?;
    subscription.check().map_err(|e| invalid(e.to_string()))?;
    let canonical = canonical::to_vec(&subscription).map_err(|e| invalid(e.to_string()))?;
    if canonical != file.bytes {
        return Err(PlanFault::NotCanonical(file.path.clone()));
    }
    Ok((Digest::of(&canonical), subscription))
}

fn admission(file: &File) -> Result<Admission, PlanFault> {
    serde_json::from_slice(&file.bytes)
        .map_err(|e| PlanFault::Invalid(file.path.clone(), "admission", e.to_string()))
}
