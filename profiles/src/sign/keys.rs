//! Keys for trying a profile out: a secret as its provider would give it, or a key pair.

use aws_lc_rs::rand;
use ed25519_dalek::SigningKey;
use postern_contract::Secret;

use crate::encoding::Encoding;
use crate::profile::{KeyDecoding, Profile, SchemeKind};
use crate::scheme::{self, signing};

/// A key to sign with, and the one to bind
pub struct TrialKey {
    /// What `postern send` signs with
    pub private: Secret,
    /// What a source binds, where it is another: a public key is no secret
    pub public: Option<String>,
}

impl Profile {
    /// Makes a key for the first way in which the profile is authenticated; nothing where the system has no
    /// randomness
    pub fn trial_key(&self) -> Option<TrialKey> {
        let auth = self.declared.auth.first()?;
        let of_token = (auth.jwt.as_ref())
            .and_then(|rules| rules.algorithms.iter().find_map(|alg| alg.signature()));
        if let Some(kind) = scheme::signature(auth.scheme).or(of_token) {
            let pair = signing::generate(kind)?;
            return Some(TrialKey {
                private: pair.private,
                public: Some(pair.public),
            });
        }
        let mut bytes = [0; 32];
        rand::fill(&mut bytes).ok()?;
        let hex = |bytes: &[u8]| Encoding::Hex.encode(bytes);
        if auth.scheme == SchemeKind::Ed25519 {
            let public = SigningKey::from_bytes(&bytes).verifying_key();
            return Some(TrialKey {
                private: Secret::new(hex(&bytes).into_bytes()),
                public: Some(hex(public.as_bytes())),
            });
        }
        let text = match (auth.scheme, auth.key) {
            (SchemeKind::Basic, _) => format!("postern:{}", hex(&bytes)),
            (_, KeyDecoding::Whsec) => format!("whsec_{}", Encoding::Base64.encode(&bytes)),
            (_, KeyDecoding::Base64) => Encoding::Base64.encode(&bytes),
            (_, KeyDecoding::Text | KeyDecoding::Hex | KeyDecoding::Sha1) => hex(&bytes),
        };
        Some(TrialKey {
            private: Secret::new(text.into_bytes()),
            public: None,
        })
    }
}
