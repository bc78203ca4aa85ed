// URLs from parts that are right, odd or wrong.

const PATHS = ['', '/', '/octo', '/octo/hello', '/octo/hello/issues/7', '/Octo', '/a//b', '/a%2fb', '/%7Eo', '/%7eo', '/caf%c3%a9', '/a%20b', '/octo/', '/x.y', '/..a', '/a;b=1', "/a:@!$&'()*+,;=b", '/%2541', '/%41%5a'];
const BAD_PATHS = ['/./o', '/../o', '/o/..', '/o/.', '/%2e%2e/o', '/.%2E', '/%2e', '/a b', '/a\\b', '/%', '/%4', '/%zz', '/%4g', '/a|b', '/a"b', '/<a>', '/a^b', '/a`b', '/{a}', '/[a]', '/\u00e9', '/a\u0000', '/a\nb'];
const HOSTS = ['github.com', 'github.com', 'GitHub.COM', 'gitlab.com', 'xn--bcher-kva.example', '127.0.0.1', 'a_b.example', 'localhost', 'a-.b', 'x~y.example'];
const BAD_HOSTS = ['', '.', 'a..b', '.a', 'github.com.', '[::1]', '[v1.a]', 'b\u00fccher.example', 'git hub.com', 'github.com%40evil.example', 'gith%75b.com', 'a\\b', 'a\tb', 'a<b', 'u@github.com', 'u:p@github.com', '@github.com', ':@github.com'];
const PORTS = ['', '', '', '', ':443', ':8443', ':1', ':65535', ':444'];
const BAD_PORTS = [':', ':0', ':0443', ':65536', ':99999', ':100000', ':-1', ':+1', ':4a', ':443:443', ':\u0661', ': 1'];
const QUERIES = ['', '', '', '?', '?a=1', '?a/b?c', '?%7e=%2f', '?..', '?a=/../b'];
const BAD_QUERIES = ['? ', '?[a]', '?%', '?\u00e9', '?a|b', '?"'];
const FRAGMENTS = ['', '', '', '#', '#frag', '#a/b?c', '#%41'];
const BAD_FRAGMENTS = ['#a#b', '# ', '#\u00e9', '#%zz', '#[x]', '#<'];
const SCHEMES = ['https://', 'https://', 'https://', 'https://', 'HTTPS://', 'hTtPs://'];
const BAD_SCHEMES = ['http://', 'https:', 'https:/', 'https:///', '//', '', 'ftp://', ' https://', '\thttps://', 'https\u200b://', 'https:\\\\', 'wss://'];

/** A URL with at most one wrong part. */
export function url(r) {
  const wrong = r.oneIn(3) ? r.below(6) : -1;
  const part = (i, good, bad) => r.pick(i === wrong ? bad : good);
  return (
    part(0, SCHEMES, BAD_SCHEMES) + part(1, HOSTS, BAD_HOSTS) + part(2, PORTS, BAD_PORTS) +
    part(3, PATHS, BAD_PATHS) + part(4, QUERIES, BAD_QUERIES) + part(5, FRAGMENTS, BAD_FRAGMENTS)
  );
}
