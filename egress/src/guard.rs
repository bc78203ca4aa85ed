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

/// The addresses of one host and port, each of which may be reached. Only [`vet`] makes it.
#[derive(Clone, Debug)]
pub struct Vetted {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Vetted {
    /// The host that they are the addresses of
    pub fn host(&self) -> &str {
        &self.host
    }
    /// Where to connect to
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

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
                    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
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

    /// Whether the operator lists this host and port by name, or its literal address by network
    pub fn lists_host(&self, host: &str, port: u16) -> bool {
        let host = host.trim_matches(['[', ']']);
        self.hosts.iter().any(|(h, p)| h == host && *p == port)
            || (host.parse::<IpAddr>())
                .is_ok_and(|address| self.networks.iter().any(|n| n.contains(&address)))
    }
}

/// Passes addresses of `host` on only if every one of them may be reached at `port`
pub fn vet(
    addresses: Vec<IpAddr>,
    host: &str,
    port: u16,
    allowed: &Allowed,
) -> Result<Vetted, Forbidden> {
    for address in &addresses {
        if let Some(why) = special(*address)
            && !allowed.lists(*address, host, port)
        {
            return Err(Forbidden(*address, why));
        }
    }
    Ok(Vetted {
        host: host.to_owned(),
        addresses: addresses
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect(),
    })
}

/// Why an address is no public one (IANA's special-purpose registries, RFC 6890)
fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, d] = address.octets();
    // In a public block, yet answered by the machine's own host
    if (a, b, c, d) == (168, 63, 129, 16) {
        return Some("a cloud's own service");
    }
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
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
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
    fn a_listed_network_allows_clear_text_to_its_literal_addresses() {
        let allowed = Allowed::parse(&["[::1]:8080".to_owned(), "10.0.0.0/8".to_owned()]).unwrap();
        assert!(allowed.lists_host("[::1]", 8080));
        assert!(!allowed.lists_host("[::1]", 8081));
        assert!(allowed.lists_host("10.1.1.1", 1));
        assert!(!allowed.lists_host("ten.example", 1));
    }

    #[test]
    fn one_forbidden_address_forbids_the_name() {
        let addresses = vec!["1.1.1.1".parse().unwrap(), "127.0.0.1".parse().unwrap()];
        assert!(vet(addresses, "x", 443, &Allowed::default()).is_err());
    }

    /// The blocks of IANA's IPv4 registry that are not globally reachable, 192.88.99.0/24 (withdrawn,
    /// RFC 7526), and multicast
    const SPECIAL_V4: &[&str] = &[
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "168.63.129.16/32",
    ];
    /// Likewise of the IPv6 registry, with multicast and the withdrawn site-local block
    const SPECIAL_V6: &[&str] = &[
        "::/128",
        "::1/128",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    ];

    /// An address of one of `blocks`: `bits` fill what the prefix leaves open
    fn within(blocks: &[&str], index: usize, bits: u128) -> IpAddr {
        let block: IpNet = blocks[index % blocks.len()].parse().unwrap();
        match (block.network(), block.hostmask()) {
            (IpAddr::V4(net), IpAddr::V4(mask)) => {
                Ipv4Addr::from(u32::from(net) | (u32::from(mask) & bits as u32)).into()
            }
            (IpAddr::V6(net), IpAddr::V6(mask)) => {
                Ipv6Addr::from(u128::from(net) | (u128::from(mask) & bits)).into()
            }
            other => panic!("{other:?}"),
        }
    }

    /// One of the ways to write an IPv4 address into a URL
    fn spelled(address: Ipv4Addr, how: u8) -> String {
        let n = u32::from(address);
        let [a, b, c, d] = address.octets();
        let low = n & 0xff_ffff;
        match how % 12 {
            0 => address.to_string(),
            1 => n.to_string(),
            2 => format!("0x{n:x}"),
            3 => format!("0{n:o}"),
            4 => format!("0x{a:X}.{low}"),
            5 => format!("{a}.0{b:o}.{}", n & 0xffff),
            6 => format!("0{a:o}.0x{b:x}.{c}.0{d:o}"),
            7 => format!("[::ffff:{address}]"),
            8 => format!("[::ffff:{:x}:{:x}]", n >> 16, n & 0xffff),
            9 => format!("[64:ff9b::{:x}:{:x}]", n >> 16, n & 0xffff),
            10 => format!("[2002:{:x}:{:x}::1]", n >> 16, n & 0xffff),
            // Full-width digits and full stops, percent-encoded
            _ => address
                .to_string()
                .replace('.', "%E3%80%82")
                .replace('1', "%EF%BC%91"),
        }
    }

    fn refused(host: &str) -> bool {
        let url: url::Url = format!("https://{host}/x").parse().unwrap();
        let address: IpAddr = match url.host().unwrap() {
            url::Host::Ipv4(address) => address.into(),
            url::Host::Ipv6(address) => address.into(),
            url::Host::Domain(name) => panic!("`{host}` is taken for the name `{name}`"),
        };
        vet(vec![address], "x", 443, &Allowed::default()).is_err()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn every_special_ipv4_is_refused_in_every_spelling(
            block in any::<usize>(), bits in any::<u32>(), how in any::<u8>(),
        ) {
            let IpAddr::V4(address) = within(SPECIAL_V4, block, bits.into()) else { panic!() };
            let host = spelled(address, how);
            prop_assert!(refused(&host), "{address} as {host}");
        }

        #[test]
        fn every_special_ipv6_is_refused_in_every_spelling(
            block in any::<usize>(), bits in any::<u128>(), long in any::<bool>(),
        ) {
            let IpAddr::V6(address) = within(SPECIAL_V6, block, bits) else { panic!() };
            let groups: Vec<String> = address.segments().iter().map(|s| format!("{s:04X}")).collect();
            let host = if long { groups.join(":") } else { address.to_string() };
            prop_assert!(refused(&format!("[{host}]")), "{address} as {host}");
        }

        #[test]
        fn every_other_ipv4_may_be_reached(bits in any::<u32>()) {
            let address = Ipv4Addr::from(bits);
            let special = SPECIAL_V4
                .iter()
                .any(|block| block.parse::<IpNet>().unwrap().contains(&IpAddr::V4(address)));
            prop_assert_eq!(special_v4(address).is_some(), special, "{}", address);
        }
    }
}
