//! Why a delivery is not authentic: for the operator alone. The sender sees one text whatever the cause.
//! Nothing here holds a secret, a computed signature or a piece of the body.

use postern_contract::fault::{Fault, Party};

/// The step of verification that failed
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Step {
    /// Deliveries are posted
    #[error("the method is not POST")]
    Method,
    /// No header carries a signature or token
    #[error("no signature header")]
    SignatureMissing,
    /// The header stands several times
    #[error("the signature header stands several times")]
    SignatureRepeated,
    /// The header's text has no candidate of the profile's form
    #[error("the signature header has no signature of the profile's form")]
    SignatureMalformed,
    /// A candidate is not a signature's spelling or length
    #[error("the signature does not decode to the right length")]
    SignatureUndecodable,
    /// No candidate is right under any live key
    #[error("no signature is right under any live key")]
    SignatureMismatch,
    /// The signed id is missing or stands several times
    #[error("the signed id is missing or stands several times")]
    IdMissing,
    /// The timestamp is missing or stands several times
    #[error("the timestamp is missing or stands several times")]
    TimestampMissing,
    /// The timestamp is not plain digits of the profile's unit
    #[error("the timestamp is not plain digits")]
    TimestampMalformed,
    /// Older than the tolerance
    #[error("the timestamp is older than the tolerance")]
    TimestampOld,
    /// Ahead of the clock by more than the tolerance
    #[error("the timestamp is ahead of the clock by more than the tolerance")]
    TimestampAhead,
    /// A condition of the profile does not hold, or an alternative's does not
    #[error("a condition of the profile does not hold")]
    Condition,
    /// What is signed beside the body is missing
    #[error("a part of the signed content is missing")]
    ContentMissing,
    /// The list of signed headers is missing, or lacks what must be signed
    #[error(
        "the list of signed headers is missing or too short, or names a header that is not there once"
    )]
    HeaderList,
    /// The certificate stands where the provider has none
    #[error("the delivery names no certificate of its provider")]
    CertificateUrl,
    /// No key is named, or not by what a key's id looks like
    #[error("the delivery names no key, or by what no key's id looks like")]
    KeyUnnamed,
    /// The provider has no such key
    #[error("the provider has no key of the id that the delivery names")]
    KeyUnknown,
    /// The body is not what the signed hash says
    #[error("the body does not have the hash that is signed")]
    BodyHash,
    /// No token of an allowed algorithm
    #[error("the token is malformed, or of an algorithm that the profile does not allow")]
    TokenMalformed,
    /// A claim is missing or of another value
    #[error("a claim of the token is missing or not as the profile wants it")]
    TokenClaim,
    /// Another issuer
    #[error("the token is of another issuer")]
    TokenIssuer,
    /// For somebody else
    #[error("the token is for another audience")]
    TokenAudience,
    /// A hash of the token is not that of the request
    #[error("a hash in the token is not that of the request")]
    TokenHash,
    /// Every key has passed its end, or there is none
    #[error("the source has no live key")]
    NoLiveKey,
}

/// A refusal
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}")]
pub struct Refusal {
    /// The step that failed
    pub step: Step,
    /// Numbers that help the operator, such as how far a timestamp is off
    pub detail: Option<String>,
}

impl From<Step> for Refusal {
    fn from(step: Step) -> Self {
        Self { step, detail: None }
    }
}

impl Step {
    /// Stable kebab-case code
    pub fn code(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::SignatureMissing => "signature-missing",
            Self::SignatureRepeated => "signature-repeated",
            Self::SignatureMalformed => "signature-malformed",
            Self::SignatureUndecodable => "signature-undecodable",
            Self::SignatureMismatch => "signature-mismatch",
            Self::IdMissing => "id-missing",
            Self::TimestampMissing => "timestamp-missing",
            Self::TimestampMalformed => "timestamp-malformed",
            Self::TimestampOld => "timestamp-old",
            Self::TimestampAhead => "timestamp-ahead",
            Self::Condition => "condition",
            Self::ContentMissing => "content-missing",
            Self::HeaderList => "header-list",
            Self::CertificateUrl => "certificate-url",
            Self::KeyUnnamed => "key-unnamed",
            Self::KeyUnknown => "key-unknown",
            Self::BodyHash => "body-hash",
            Self::TokenMalformed => "token-malformed",
            Self::TokenClaim => "token-claim",
            Self::TokenIssuer => "token-issuer",
            Self::TokenAudience => "token-audience",
            Self::TokenHash => "token-hash",
            Self::NoLiveKey => "no-live-key",
        }
    }
}

impl Fault for Refusal {
    fn code(&self) -> &'static str {
        self.step.code()
    }
    fn fault(&self) -> Party {
        match self.step {
            Step::NoLiveKey => Party::Operator,
            _ => Party::Sender,
        }
    }
    fn hint(&self) -> Option<String> {
        match self.step {
            Step::SignatureMismatch => Some(
                "check that the source's secret is the provider's, and that nothing before postern changes the body"
                    .to_owned(),
            ),
            Step::TimestampOld | Step::TimestampAhead => {
                Some("check this machine's clock".to_owned())
            }
            _ => None,
        }
    }
}
