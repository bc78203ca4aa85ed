//! Keys as the operator has them, and what is refused of them when a source is bound: a mistake in a
//! secret must show when the gateway starts, not as deliveries that never match.

use postern_contract::fault::{Fault, Party};
use postern_contract::{Secret, Timestamp};

use sha1::{Digest as _, Sha1};

use crate::encoding::Encoding;
use crate::jwk;
use crate::profile::{Auth, KeyDecoding, SchemeKind};
use crate::scheme::{self, Ready};

/// A key of a source
#[derive(Clone, Debug)]
pub struct Key {
    /// What the log calls it
    pub name: String,
    /// What deliveries call it, where the provider gives keys an id; without one it counts for all
    pub id: Option<String>,
    /// The material
    pub material: KeyMaterial,
    /// When it stops counting
    pub not_after: Option<Timestamp>,
}

/// A secret, or a public key
#[derive(Clone, Debug)]
pub enum KeyMaterial {
    /// A secret's text
    Secret(Secret),
    /// A public key: of Ed25519 32 bytes as hex or Base64, with `whpk_` or without; else PEM of a key or a
    /// certificate, DER in Base64, or a JSON Web Key or set
    Public(String),
}

/// Why keys, parameters or tolerances cannot be bound
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// No key, and the profile has no setup
    #[error("there is no key: every delivery would be refused")]
    NoKey,
    /// Nothing but blanks
    #[error("the key `{0}` is empty")]
    Empty(String),
    /// Blanks around it
    #[error("the key `{0}` has blanks or line ends around it, which would count")]
    Blanks(String),
    /// A Standard Webhooks signature's version stands before it
    #[error("the key `{0}` begins with `v1,`, which belongs to signatures")]
    Version(String),
    /// Not the encoding of the profile
    #[error("the key `{0}` is not {1}")]
    Encoding(String, &'static str),
    /// A secret where a public key is wanted, or the other way round
    #[error("the key `{0}`: the profile takes a {1}")]
    OtherKind(String, &'static str),
    /// A parameter that the profile wants
    #[error("the profile wants the parameter `{0}`")]
    NoParam(String),
    /// A parameter that the profile does not know
    #[error("the profile has no parameter `{0}`")]
    UnknownParam(String),
    /// Parameters of the generic profile that make none
    #[error("the generic profile's parameters: {0}")]
    Generic(String),
    /// Keys that are fetched are asked for with a credential
    #[error("the profile's keys are fetched with a credential, and the source has none")]
    NoCredential,
    /// A credential that nothing asks for
    #[error("the source's credential is for fetching keys, and none are fetched")]
    UnusedCredential,
    /// A tolerance of nothing
    #[error("a tolerance of 0 accepts nothing")]
    Tolerance,
    /// A tolerance for a profile without timestamps
    #[error("the profile has no signed timestamp, so that a tolerance means nothing")]
    NoTimestamp,
}

impl Fault for BindError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoKey => "bind-no-key",
            Self::Empty(_) => "bind-empty-key",
            Self::Blanks(_) => "bind-blanks",
            Self::Version(_) => "bind-version",
            Self::Encoding(..) => "bind-encoding",
            Self::OtherKind(..) => "bind-other-kind",
            Self::NoParam(_) => "bind-no-param",
            Self::UnknownParam(_) => "bind-unknown-param",
            Self::Generic(_) => "bind-generic",
            Self::NoCredential => "bind-no-credential",
            Self::UnusedCredential => "bind-unused-credential",
            Self::Tolerance => "bind-tolerance",
            Self::NoTimestamp => "bind-no-timestamp",
        }
    }
    fn fault(&self) -> Party {
        Party::Operator
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Version(_) => Some("take `v1,` away: a secret begins with `whsec_`".to_owned()),
            Self::NoCredential => {
                Some("give the source a `credential`, or bind its keys by hand".to_owned())
            }
            Self::Blanks(_) => Some(
                "take the blanks away; one newline at the end of a file is dropped by itself"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The key, prepared for the scheme
pub(crate) fn prepare(key: &Key, auth: &Auth) -> Result<Ready, BindError> {
    let scheme = auth.scheme;
    let public = auth.is_public();
    let fault = |wanted| BindError::Encoding(key.name.clone(), wanted);
    match (&key.material, public) {
        (KeyMaterial::Public(_), false) => Err(BindError::OtherKind(key.name.clone(), "secret")),
        (KeyMaterial::Secret(_), true) => Err(BindError::OtherKind(key.name.clone(), "public key")),
        (KeyMaterial::Public(text), true) => match scheme {
            SchemeKind::Ed25519 => {
                let text = text.strip_prefix("whpk_").unwrap_or(text).as_bytes();
                (Encoding::Hex.decode(text))
                    .or_else(|| Encoding::Base64.decode(text))
                    .and_then(|bytes| Ready::ed25519(&bytes))
                    .ok_or_else(|| fault("a public key of 32 bytes in hex or Base64"))
            }
            SchemeKind::Jwt => (jwk::token_keys(text).map(Ready::JwtPublic))
                .ok_or_else(|| fault("a JSON Web Key, a set of them, PEM, or DER in Base64")),
            _ => (jwk::public_key(text))
                .or_else(|| jwk::short_key(text).filter(|_| auth.short_keys))
                .and_then(|key| Ready::public(scheme, key))
                .ok_or_else(|| {
                    fault(
                        "a public key of the profile's kind: PEM, a JSON Web Key, or DER in Base64",
                    )
                }),
        },
        (KeyMaterial::Secret(secret), false) => {
            let decoded = decode(key, secret, scheme, auth.key)?;
            Ready::secret(scheme, decoded).ok_or_else(|| fault("a key of the profile's scheme"))
        }
    }
}

/// A secret's bytes, as the scheme takes them
pub(crate) fn decode(
    key: &Key,
    secret: &Secret,
    scheme: SchemeKind,
    decoding: KeyDecoding,
) -> Result<Secret, BindError> {
    let name = || key.name.clone();
    let text = secret.expose();
    if text.trim_ascii().is_empty() {
        return Err(BindError::Empty(name()));
    }
    if text.trim_ascii().len() != text.len() {
        return Err(BindError::Blanks(name()));
    }
    if text.starts_with(b"v1,whsec_") {
        return Err(BindError::Version(name()));
    }
    if scheme == SchemeKind::Basic {
        // The whole header, or what it encodes
        let pair = scheme::basic(text).or_else(|| text.contains(&b':').then(|| text.to_vec()));
        return pair.map(Secret::new).ok_or_else(|| {
            BindError::Encoding(name(), "`user:password`, or the header `Basic …`")
        });
    }
    let decoded = match decoding {
        KeyDecoding::Text => Some(text.to_vec()),
        KeyDecoding::Hex => Encoding::Hex.decode(text),
        KeyDecoding::Base64 => Encoding::Base64.decode(text),
        KeyDecoding::Whsec => Encoding::Base64.decode(text.strip_prefix(b"whsec_").unwrap_or(text)),
        KeyDecoding::Sha1 => Some(Sha1::digest(text).to_vec()),
    };
    let wanted = match decoding {
        KeyDecoding::Text | KeyDecoding::Sha1 => "text",
        KeyDecoding::Hex => "hex",
        KeyDecoding::Base64 => "Base64",
        KeyDecoding::Whsec => "`whsec_` and Base64",
    };
    match decoded {
        Some(bytes) if !bytes.is_empty() => Ok(Secret::new(bytes)),
        _ => Err(BindError::Encoding(name(), wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(text: &str, decoding: KeyDecoding) -> Result<Vec<u8>, BindError> {
        let secret = Secret::new(text.as_bytes().to_vec());
        let key = Key {
            name: "K".to_owned(),
            id: None,
            material: KeyMaterial::Secret(secret.clone()),
            not_after: None,
        };
        decode(&key, &secret, SchemeKind::HmacSha256, decoding)
            .map(|secret| secret.expose().to_vec())
    }

    #[test]
    fn report_a16_a17_a18_a19_mistakes_in_secrets_show_at_once() {
        use KeyDecoding::{Text, Whsec};
        // The published secret of report A16 decodes to 24 bytes
        let good = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
        assert_eq!(bind(&format!("whsec_{good}"), Whsec).unwrap().len(), 24);
        assert_eq!(bind(good, Whsec).unwrap().len(), 24);
        let name = || "K".to_owned();
        assert_eq!(
            bind(&format!("v1,whsec_{good}"), Whsec),
            Err(BindError::Version(name()))
        );
        let encoding = Err(BindError::Encoding(name(), "`whsec_` and Base64"));
        assert_eq!(bind("whsec_xyz!", Whsec), encoding);
        assert_eq!(bind("whsec_", Whsec), encoding);
        assert_eq!(bind("", Text), Err(BindError::Empty(name())));
        assert_eq!(bind(" ", Text), Err(BindError::Empty(name())));
        assert_eq!(bind("secret\n", Text), Err(BindError::Blanks(name())));
        // Some providers sign with the prefix inside the key
        assert_eq!(bind("whsec_abc", Text).unwrap(), b"whsec_abc");
    }
}
