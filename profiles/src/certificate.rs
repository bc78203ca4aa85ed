//! Where a delivery says that its signer's certificate stands, and what is held of that certificate. The
//! sender writes the address, so that it is held to the profile's list before anything else is believed of
//! it, whoever the key comes from. The addresses that confirm a subscription are held likewise.

use std::time::Duration;

use postern_contract::Timestamp;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use serde::{Deserialize, Serialize};
use url::{Host, Url};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::facts::View;
use crate::profile::VisitRule;
use crate::scheme::PublicKey;
use crate::signature;
use crate::source::Source;

/// The most certificates of an answer
const MAX_CHAIN: usize = 8;

/// The addresses of certificates that a profile takes
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct CertificateRule {
    /// Where the delivery names it
    pub(crate) at: Source,
    /// Its host is one of these; a `*` is one label of at least three letters, digits and hyphens
    pub(crate) hosts: Vec<String>,
    /// Its path begins so
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path_prefix: Option<String>,
    /// And ends so
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path_suffix: Option<String>,
    /// The certificate is of one of these names
    pub(crate) names: Vec<String>,
    /// A certificate that comes alone stands without its issuers: the host is all that vouches for it
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) alone: bool,
}

/// Why a certificate is not the provider's
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTrusted {
    /// No certificate in PEM
    #[error("the answer is no certificate in PEM")]
    NotPem,
    /// Not of the names of the profile
    #[error("it is not of the provider's names")]
    Name,
    /// Before or after its time
    #[error("it is not valid now")]
    Time,
    /// No way from it to a root
    #[error("no chain to a root of this system: {0}")]
    Chain(String),
}

/// The certificate that signs
pub(crate) struct Leaf {
    pub(crate) key: PublicKey,
    pub(crate) not_after: Timestamp,
}

impl CertificateRule {
    /// The address that the delivery names, where it is one of the profile
    pub(crate) fn address(&self, view: &View<'_>) -> Option<Url> {
        self.allowed(&self.at.read(view).name()?)
    }

    /// An address of the provider, with a path of the profile and no query
    fn allowed(&self, text: &str) -> Option<Url> {
        let url = of_hosts(text, &self.hosts)?;
        let path = url.path();
        let held = url.query().is_none()
            && (self.path_prefix.as_ref()).is_none_or(|prefix| path.starts_with(prefix))
            && (self.path_suffix.as_ref()).is_none_or(|suffix| path.ends_with(suffix));
        held.then_some(url)
    }

    /// Reads what stands there: the certificate first and then its issuers, of which the chain leads to an
    /// anchor
    pub(crate) fn trusted(
        &self,
        pem: &[u8],
        anchors: &[TrustAnchor<'_>],
        now: Timestamp,
    ) -> Result<Leaf, NotTrusted> {
        let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(pem)
            .take(MAX_CHAIN)
            .collect();
        let chain = chain.map_err(|_| NotTrusted::NotPem)?;
        let (first, issuers) = chain.split_first().ok_or(NotTrusted::NotPem)?;
        let certificate = Certificate::from_der(first).map_err(|_| NotTrusted::NotPem)?;
        if !names(&certificate).any(|name| self.names.iter().any(|known| matches(known, &name))) {
            return Err(NotTrusted::Name);
        }
        let time = |time: &x509_cert::time::Time| {
            let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok()?;
            Timestamp::from_unix(seconds).ok()
        };
        let validity = certificate.tbs_certificate().validity();
        let ends = time(&validity.not_before).zip(time(&validity.not_after));
        let (not_before, not_after) = ends.ok_or(NotTrusted::NotPem)?;
        if now < not_before || not_after < now {
            return Err(NotTrusted::Time);
        }
        let leaf = EndEntityCert::try_from(first).map_err(|_| NotTrusted::NotPem)?;
        if !(self.alone && issuers.is_empty()) {
            let since = u64::try_from(now.unix()).map_err(|_| NotTrusted::Time)?;
            leaf.verify_for_usage(
                ALL_VERIFICATION_ALGS,
                anchors,
                issuers,
                UnixTime::since_unix_epoch(Duration::from_secs(since)),
                KeyUsage::server_auth(),
                None,
                None,
            )
            .map_err(|e| NotTrusted::Chain(e.to_string()))?;
        }
        let key = PublicKey::from_spki(&leaf.subject_public_key_info());
        Ok(Leaf {
            key: key.ok_or(NotTrusted::NotPem)?,
            not_after,
        })
    }
}

impl VisitRule {
    /// The address that the delivery names, where it is one of the provider
    pub(crate) fn address(&self, view: &View<'_>) -> Option<Url> {
        let text = match &self.at {
            // Longer than a name may be
            Source::Json(at) => signature::json(view, at)?.as_str()?.to_owned(),
            other => other.read(view).name()?,
        };
        of_hosts(&text, &self.hosts)
    }
}

/// HTTPS on its own port and a host of the list, and nothing that says whom to be
fn of_hosts(text: &str, hosts: &[String]) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let Some(Host::Domain(host)) = url.host() else {
        return None;
    };
    let plain = url.scheme() == "https"
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    let known = hosts.iter().any(|pattern| matches(pattern, host));
    (plain && known).then_some(url)
}

/// The names in DNS of a certificate, and its common name
fn names(certificate: &Certificate) -> impl Iterator<Item = String> {
    let body = certificate.tbs_certificate();
    let common = body.subject().common_name().ok().flatten();
    let common = common.map(|name| name.value().into_owned());
    let others = body.get_extension::<SubjectAltName>().ok().flatten();
    let others = others.into_iter().flat_map(|(_, names)| names.0);
    let dns = others.filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    });
    common
        .into_iter()
        .chain(dns)
        .map(|name| name.to_ascii_lowercase())
}

/// Label by label
fn matches(pattern: &str, host: &str) -> bool {
    let (mut wanted, mut labels) = (pattern.split('.'), host.split('.'));
    loop {
        match (wanted.next(), labels.next()) {
            (None, None) => return true,
            (Some("*"), Some(label)) => {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
                if label.len() < 3 || !label.bytes().all(plain) {
                    return false;
                }
            }
            (Some(wanted), Some(label)) if wanted == label => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_outside_the_list_is_none_of_the_profiles() {
        let rule = CertificateRule {
            at: Source::Header("X-Cert".to_owned()),
            hosts: vec!["sns.*.amazonaws.com".to_owned()],
            path_prefix: None,
            path_suffix: Some(".pem".to_owned()),
            names: Vec::new(),
            alone: false,
        };
        for good in [
            "https://sns.us-west-2.amazonaws.com/a.pem",
            "https://SNS.us-west-2.amazonaws.com:443/a/b.pem",
        ] {
            assert!(rule.allowed(good).is_some(), "{good}");
        }
        for bad in [
            "http://sns.us-west-2.amazonaws.com/a.pem",
            "https://sns.us-west-2.amazonaws.com:8443/a.pem",
            "https://sns.us-west-2.amazonaws.com/a.pem?x=1",
            "https://sns.us-west-2.amazonaws.com/a.pem#.pem",
            "https://sns.us-west-2.amazonaws.com/a.crt",
            "https://sns.us-west-2.amazonaws.com.evil.example/a.pem",
            "https://sns.evil.example.amazonaws.com/a.pem",
            "https://sns.ab.amazonaws.com/a.pem",
            "https://sns.us-west-2.amazonaws.com@evil.example/a.pem",
            "https://me@sns.us-west-2.amazonaws.com/a.pem",
            "https://evil.example/sns.us-west-2.amazonaws.com/a.pem",
            "https://sns.us-west-2.amazonaws.com\\@evil.example/a.pem?",
            "https://127.0.0.1/a.pem",
            "//sns.us-west-2.amazonaws.com/a.pem",
            "",
        ] {
            assert!(rule.allowed(bad).is_none(), "{bad}");
        }
    }
}
