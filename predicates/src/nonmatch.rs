//! Why a delivery does not match: a closed list of reasons, each with the place in the evidence.

use serde::Serialize;

macro_rules! reasons {
    ($($name:ident $text:literal $about:literal,)*) => {
        /// The closed list of reasons (event-predicates/v1, section 6)
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Reason {
            $(#[doc = $about] $name,)*
        }
        impl Reason {
            /// Every reason
            pub const ALL: &[Self] = &[$(Self::$name,)*];
            /// Its stable spelling
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    MalformedBody "malformed-body" "The body is no evidence",
    EventNotListed "event-not-listed" "The trigger does not list the native event",
    AmbiguousEvidence "ambiguous-evidence" "An object of the body repeats a key",
    MatchNotTrue "match-not-true" "`match` is false or unknown",
    WhenNotTrue "when-not-true" "`when` is false or unknown",
    NoVariant "no-variant" "No variant matches",
    AmbiguousVariant "ambiguous-variant" "Two variants match",
    MissingEvidence "missing-evidence" "A required field is absent, unreachable or null",
    TypeMismatch "type-mismatch" "A field has another type",
    IntegerOutOfRange "integer-out-of-range" "An integer outside of ±(2^53−1)",
    NumberNotExact "number-not-exact" "A fraction that binary64 does not carry",
    StringTooLong "string-too-long" "A string of more than 4,096 code points",
    ListTooLong "list-too-long" "A list of more than 100 items",
    ResourceNotGranted "resource-not-granted" "A resource that the binding does not grant",
    UrlInvalid "url-invalid" "No absolute https URL in its plain form",
    OriginNotListed "origin-not-listed" "A URL of another origin",
    PrefixMismatch "prefix-mismatch" "A URL that does not begin as declared",
    FilterNotTrue "filter-not-true" "A chosen filter is false or unknown",
}

/// A delivery that does not match, with its one reason
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nonmatch {
    /// Why
    pub reason: Reason,
    /// The evidence's pointer; the field's name for resources and URLs, the second variant's for
    /// `ambiguous-variant`; nothing where nothing can be pointed at
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl Nonmatch {
    pub(crate) fn at(reason: Reason, at: &str) -> Self {
        Self {
            reason,
            at: Some(at.to_owned()),
        }
    }
    /// A body that is no evidence at all
    pub const MALFORMED: Self = Self {
        reason: Reason::MalformedBody,
        at: None,
    };
}
