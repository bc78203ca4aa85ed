//! Where a delivery says that its signer's certificate stands. The sender writes that address, so that it is
//! held to the profile's list before anything else is believed of it, whoever the key comes from.

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::facts::View;
use crate::source::Source;

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
}

impl CertificateRule {
    /// Whether the delivery names an address of the profile
    pub(crate) fn holds(&self, view: &View<'_>) -> bool {
        let text = self.at.read(view).name();
        text.is_some_and(|text| self.allows(&text))
    }

    /// HTTPS on its own port, a host of the list, a path of the profile, and nothing else
    fn allows(&self, text: &str) -> bool {
        let Ok(url) = Url::parse(text) else {
            return false;
        };
        let Some(Host::Domain(host)) = url.host() else {
            return false;
        };
        let path = url.path();
        url.scheme() == "https"
            && url.port().is_none()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && self.hosts.iter().any(|pattern| matches(pattern, host))
            && (self.path_prefix.as_ref()).is_none_or(|prefix| path.starts_with(prefix))
            && (self.path_suffix.as_ref()).is_none_or(|suffix| path.ends_with(suffix))
    }
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
        };
        for good in [
            "https://sns.us-west-2.amazonaws.com/a.pem",
            "https://SNS.us-west-2.amazonaws.com:443/a/b.pem",
        ] {
            assert!(rule.allows(good), "{good}");
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
            assert!(!rule.allows(bad), "{bad}");
        }
    }
}
