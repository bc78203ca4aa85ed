//! Admission: whether a subscription's events may leave for a destination. Every condition is checked
//! here and nowhere else; [`Admitted`] exists only where all of them hold, and the dispatcher takes
//! nothing less. What is not admitted gets nothing, and the event log says why.

use postern_contract::pointer::Pointer;
use postern_contract::{Admission, Digest, Document, Name, Resolution, Subscription, Timestamp};
use postern_predicates::{Binding, Trigger};

/// The App and installation that a destination's credential acts as
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The App's id
    pub app: u64,
    /// The installation's id
    pub installation: u64,
}

/// What admission must know of a source
pub struct SourceFacts<'a> {
    /// Its name
    pub name: &'a Name,
    /// The id of its verification profile
    pub profile: &'a str,
    /// The digest of that profile
    pub profile_digest: Digest,
    /// The App whose webhook this is
    pub app: Option<u64>,
    /// The outer bounds of its subscriptions
    pub grants: &'a Binding,
}

/// What admission must know of a destination
pub struct DestinationFacts<'a> {
    /// Its name
    pub name: &'a Name,
    /// Its credential's App and installation, where it has one
    pub credential: Option<Provenance>,
}

/// Why a subscription gets nothing: a closed list, in the order of the checks
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum NotAdmitted {
    /// No admission names this subscription's digest for this source
    #[error("no admission names this subscription for this source")]
    NoAdmission,
    /// The repository has not opted in
    #[error("the repository has not opted in, or only for a time that is yet to come")]
    NoOptIn,
    /// The admission is for another repository, or the subscription names none
    #[error("the admission's repository is not the subscription's")]
    OtherRepository,
    /// The admission's time is over
    #[error("the admission has expired")]
    Expired,
    /// The admission names a destination that is not configured
    #[error("the admission's destination is not configured")]
    NoDestination,
    /// The trigger of the named digest is not here
    #[error("no trigger of the subscription's digest is loaded")]
    NoTrigger,
    /// The subscription and the trigger of its digest disagree
    #[error("the subscription and its trigger disagree on connector, trigger, profile or binding")]
    OtherTrigger,
    /// The source verifies by another profile, or by another version of it
    #[error(
        "the source's verification profile is not the one that the subscription was compiled for"
    )]
    OtherProfile,
    /// The chosen filters do not fit the trigger
    #[error("the subscription's filters are not the trigger's")]
    OtherFilters,
    /// The subscription's resources or origins reach past the source's
    #[error("the subscription's grants reach past the source's")]
    WiderGrants,
    /// The destination's credential is another App's
    #[error("the admission's app is not the one of the destination's credential or of the source")]
    OtherApp,
    /// The destination's credential is another installation's
    #[error("the admission's installation is not the one of the destination's credential")]
    OtherInstallation,
    /// An App's evidence that names no installation
    #[error("the evidence names no installation")]
    NoInstallation,
    /// An App's evidence that names another installation
    #[error("the evidence names another installation than the admission")]
    ForeignInstallation,
}

impl NotAdmitted {
    /// Stable kebab-case code
    pub fn code(self) -> &'static str {
        match self {
            Self::NoAdmission => "no-admission",
            Self::NoOptIn => "no-opt-in",
            Self::OtherRepository => "other-repository",
            Self::Expired => "admission-expired",
            Self::NoDestination => "no-destination",
            Self::NoTrigger => "no-trigger",
            Self::OtherTrigger => "other-trigger",
            Self::OtherProfile => "other-profile",
            Self::OtherFilters => "other-filters",
            Self::WiderGrants => "wider-grants",
            Self::OtherApp => "other-app",
            Self::OtherInstallation => "other-installation",
            Self::NoInstallation => "no-installation",
            Self::ForeignInstallation => "foreign-installation",
        }
    }
}

/// A subscription whose frozen documents, source and destination have been checked against the
/// admission. What only time and the delivery's own evidence can show is checked by [`Self::permit`].
#[derive(Debug)]
pub struct Admitted {
    subscription: Digest,
    destination: Name,
    installation: Option<u64>,
    opted_in: Timestamp,
    expires: Option<Timestamp>,
}

/// Proof that one delivery may go to one destination
#[derive(Debug, PartialEq, Eq)]
pub struct Permit<'a> {
    subscription: Digest,
    destination: &'a Name,
}

impl Permit<'_> {
    /// The admitted subscription
    pub fn subscription(&self) -> Digest {
        self.subscription
    }
    /// Where it goes
    pub fn destination(&self) -> &Name {
        self.destination
    }
}

impl Admitted {
    /// Checks everything that holds until a file changes
    pub fn new(
        digest: Digest,
        subscription: &Subscription,
        trigger: Option<&Trigger>,
        source: &SourceFacts<'_>,
        admission: &Admission,
        destination: Option<&DestinationFacts<'_>>,
    ) -> Result<Self, NotAdmitted> {
        if admission.subscription_digest != digest || &admission.source != source.name {
            return Err(NotAdmitted::NoAdmission);
        }
        if admission.opt_in.by.trim().is_empty() {
            return Err(NotAdmitted::NoOptIn);
        }
        if subscription.repository.as_deref() != Some(admission.repository.as_str()) {
            return Err(NotAdmitted::OtherRepository);
        }
        let destination = destination
            .filter(|d| d.name == &admission.destination)
            .ok_or(NotAdmitted::NoDestination)?;
        let trigger = trigger.ok_or(NotAdmitted::NoTrigger)?;
        agree(subscription, trigger)?;
        if subscription.profile != source.profile
            || subscription.profile_digest != source.profile_digest
        {
            return Err(NotAdmitted::OtherProfile);
        }
        if trigger.binding().within(source.grants).is_err() {
            return Err(NotAdmitted::WiderGrants);
        }
        if let Some(credential) = destination.credential {
            if admission.app != Some(credential.app) {
                return Err(NotAdmitted::OtherApp);
            }
            if admission.installation != Some(credential.installation) {
                return Err(NotAdmitted::OtherInstallation);
            }
        }
        if let Some(app) = source.app {
            if admission.app != Some(app) {
                return Err(NotAdmitted::OtherApp);
            }
            if admission.installation.is_none() {
                return Err(NotAdmitted::OtherInstallation);
            }
        }
        Ok(Self {
            subscription: digest,
            destination: destination.name.clone(),
            installation: source.app.and(admission.installation),
            opted_in: admission.opt_in.at,
            expires: admission.expires,
        })
    }

    /// Checks what this delivery's evidence and the time of day must show
    pub fn permit(&self, evidence: &Document, now: Timestamp) -> Result<Permit<'_>, NotAdmitted> {
        self.in_force(now)?;
        if let Some(admitted) = self.installation {
            match installation(evidence) {
                None => return Err(NotAdmitted::NoInstallation),
                Some(other) if other != admitted => return Err(NotAdmitted::ForeignInstallation),
                Some(_) => {}
            }
        }
        Ok(Permit {
            subscription: self.subscription,
            destination: &self.destination,
        })
    }

    /// Whether the admission counts at `now`
    pub fn in_force(&self, now: Timestamp) -> Result<(), NotAdmitted> {
        if self.opted_in > now {
            return Err(NotAdmitted::NoOptIn);
        }
        match self.expires {
            Some(end) if end <= now => Err(NotAdmitted::Expired),
            _ => Ok(()),
        }
    }

    /// The subscription's digest
    pub fn subscription(&self) -> Digest {
        self.subscription
    }
    /// Where its events go
    pub fn destination(&self) -> &Name {
        &self.destination
    }
}

/// A subscription repeats what its trigger says, so that a reviewer need not open both: they must agree.
fn agree(subscription: &Subscription, trigger: &Trigger) -> Result<(), NotAdmitted> {
    let same = subscription.trigger_digest == trigger.digest()
        && subscription.connector.as_str() == trigger.connector()
        && subscription.trigger.as_str() == trigger.trigger()
        && subscription.profile == trigger.profile()
        && subscription.profile_digest == trigger.profile_digest()
        && subscription.binding == trigger.binding_digest();
    if same {
        Ok(())
    } else {
        Err(NotAdmitted::OtherTrigger)
    }
}

/// `/installation/id` of an App's evidence: a plain positive whole number, or it is missing
fn installation(evidence: &Document) -> Option<u64> {
    let pointer: Pointer = "/installation/id".parse().ok()?;
    match evidence.resolve(&pointer) {
        Resolution::Resolved(value) => value.number_text()?.parse().ok(),
        _ => None,
    }
}
