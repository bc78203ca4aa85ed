//! Which addresses outbound requests may reach. Private, loopback, link-local and otherwise special
//! addresses are forbidden unless the operator lists them; of a name with several addresses, one that is
//! forbidden forbids the name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;

/// What the operator lets through in spite of the rules
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    networks: Vec<IpNet>,
    hosts: Vec<(String, u16)>,
}

/// An entry of the list that is neither a network nor a host with a port
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network (`10.1.0.0/16`), address or `host:port`")]
pub struct NotAllowed(String);

/// An address that may not be reached
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address `{0}` is {1}, and the operator has not allowed it")]
pub struct Forbidden(pub IpAddr, pub &'static str);

impl Allowed {
    /// Reads the operator's list
    pub fn parse(entries: &[String]) -> Result<Self, NotAllowed> {
        let mut allowed = Self::default();
        for entry in entries {
            if let Ok(network) = IpNet::from_str(entry) {
                allowed.networks.push(network);
            } else if let Ok(address) = IpAddr::from_str(entry) {
                allowed.networks.push(address.into());
            } else if let Ok(address) = SocketAddr::from_str(entry) {
                (allowed.hosts).push((address.ip().to_string(), address.port()));
            } else {
                let host = entry.rsplit_once(':').and_then(|(host, port)| {
                    let port = port.parse().ok()?;
                    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
                    (!host.is_empty() && host.bytes().all(plain))
                        .then(|| (host.to_ascii_lowercase(), port))
                });
                (allowed.hosts).push(host.ok_or_else(|| NotAllowed(entry.clone()))?);
            }
        }
        Ok(allowed)
    }

    fn lists(&self, address: IpAddr, host: &str, port: u16) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(&address))
            || (self.hosts.iter())
                .any(|(h, p)| *p == port && (h == host || *h == address.to_string()))
    }

    /// Whether the operator lists this host with any port
    pub(crate) fn lists_any_port(&self, host: &str) -> bool {
        self.hosts.iter().any(|(h, _)| h == host)
    }

    /// Whether the operator lists this host and port by name
    pub fn lists_host(&self, host: &str, port: u16) -> bool {
        self.hosts.iter().any(|(h, p)| h == host && *p == port)
            || (host.trim_matches(['[', ']']).parse::<IpAddr>())
                .is_ok_and(|address| self.networks.iter().any(|n| n.contains(&address)))
    }
}

/// Passes addresses of `host` on only if every one of them may be reached
pub fn vet(
    addresses: Vec<IpAddr>,
    host: &str,
    port: u16,
    allowed: &Allowed,
) -> Result<Vec<SocketAddr>, Forbidden> {
    for address in &addresses {
        if let Some(why) = special(*address)
            && !allowed.lists(*address, host, port)
        {
            return Err(Forbidden(*address, why));
        }
    }
    Ok(addresses
        .into_iter()
        .map(|a| SocketAddr::new(a, port))
        .collect())
}

/// Why an address is no public one (IANA's special-purpose registries, RFC 6890)
fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => "unspecified",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "private",
        (100, 64..=127, _) => "shared by a carrier",
        (127, ..) => "loopback",
        (169, 254, _) => "link-local",
        (192, 0, 0) => "reserved for protocols",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "for documentation",
        (192, 88, 99) => "a relay",
        (198, 18..=19, _) => "for benchmarks",
        (224..=239, ..) => "multicast",
        (240..=255, ..) => "reserved",
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let [a, b, c, ..] = segments;
    // An IPv4 address in disguise is judged as what it reaches
    let embedded = match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some((high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = embedded {
        let [x, y] = high.to_be_bytes();
        let [z, w] = low.to_be_bytes();
        return special_v4(Ipv4Addr::new(x, y, z, w)).or_else(|| (a != 0).then_some("a relay"));
    }
    Some(match (a, b, c) {
        _ if address.is_unspecified() => "unspecified",
        _ if address.is_loopback() => "loopback",
        (0xfc00..=0xfdff, ..) => "private",
        (0xfe80..=0xfebf, ..) => "link-local",
        (0xfec0..=0xfeff, ..) => "site-local",
        (0xff00..=0xffff, ..) => "multicast",
        (0x2001, 0xdb8, _) | (0x3fff, 0..=0xfff, _) => "for documentation",
        // 2001::/23: Teredo, ORCHID, benchmarks
        (0x2001, 0..=0x1ff, _) => "reserved for protocols",
        (0x64, 0xff9b, 1) => "a local relay",
        // Outside of 2000::/3 nothing is public
        (0x2000..=0x3fff, ..) => return None,
        _ => "reserved",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdict(address: &str, allow: &[&str]) -> bool {
        let allow: Vec<String> = allow.iter().map(|a| (*a).to_owned()).collect();
        let address = address.parse().unwrap();
        vet(
            vec![address],
            "example.com",
            443,
            &Allowed::parse(&allow).unwrap(),
        )
        .is_ok()
    }

    #[test]
    fn special_addresses_are_forbidden_in_every_disguise() {
        for bad in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.31.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
            "fec0::1",
            "1::1",
        ] {
            assert!(!verdict(bad, &[]), "{bad}");
        }
        for good in [
            "1.1.1.1",
            "172.32.0.1",
            "192.167.1.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
        ] {
            assert!(verdict(good, &[]), "{good}");
        }
    }

    #[test]
    fn the_operator_lists_networks_and_hosts() {
        assert!(verdict("10.1.2.3", &["10.1.0.0/16"]));
        assert!(!verdict("10.2.2.3", &["10.1.0.0/16"]));
        assert!(verdict("127.0.0.1", &["127.0.0.1:443"]));
        assert!(!verdict("127.0.0.1", &["127.0.0.1:80"]));
        assert!(verdict("127.0.0.1", &["example.com:443"]));
        // report F14: a single IPv6 address is a network of one
        assert!(!verdict("2001:db8::1", &["2001:db8:ffff::5"]));
        assert!(verdict("2001:db8:ffff::5", &["2001:db8:ffff::5"]));
        for bad in [
            "",
            "10.0.0.0/33",
            "host",
            "host:99999",
            "a b:1",
            "http://x:1",
        ] {
            assert!(Allowed::parse(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_forbidden_address_forbids_the_name() {
        let addresses = vec!["1.1.1.1".parse().unwrap(), "127.0.0.1".parse().unwrap()];
        assert!(vet(addresses, "x", 443, &Allowed::default()).is_err());
    }

    proptest! {
        #[test]
        fn an_embedded_ipv4_is_never_freer_than_itself(bits in any::<u32>()) {
            let v4 = Ipv4Addr::from(bits);
            if special_v4(v4).is_some() {
                prop_assert!(special_v6(v4.to_ipv6_mapped()).is_some());
                let [a, b, c, d] = v4.octets();
                let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                prop_assert!(special_v6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)).is_some());
            }
        }
    }
}
