//! Runs the slices in alternating rounds and prints, for every target and size, the server's CPU time per
//! request, ratios to the baselines as the median of the rounds' ratios, latencies and peak memory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use serde::Serialize;

use crate::Options;
use crate::client;
use crate::payload::{Plan, Signing};

const SIZES: [(&str, usize); 4] = [
    ("p1k", 1_024),
    ("p8k", 7_678),
    ("p10k", 10_240),
    ("p100k", 102_626),
];
const TARGETS: [&str; 6] = [
    "echo",
    "verify",
    "verify_parse",
    "matched",
    "nonmatch",
    "forged",
];

fn plan(target: &str, size: usize) -> Plan {
    let hook = "/hooks/github";
    match target {
        "echo" => Plan::new("/echo", size, "main", Signing::Right, 204),
        "verify" => Plan::new("/verify", size, "main", Signing::Right, 204),
        "verify_parse" => Plan::new("/verify_parse", size, "main", Signing::Right, 204),
        "matched" => Plan::new(hook, size, "main", Signing::Right, 202),
        "nonmatch" => Plan::new(hook, size, "other", Signing::Right, 204),
        _ => Plan::new(hook, size, "main", Signing::Wrong, 401),
    }
}

/// One target at one size
#[derive(Serialize)]
struct Row {
    size: &'static str,
    target: &'static str,
    cpu_us: f64,
    requests_per_second: f64,
    p50_us: u32,
    p99_us: u32,
    to_echo: f64,
    to_verify: f64,
    to_verify_parse: f64,
}

#[derive(Serialize)]
struct Report {
    rows: Vec<Row>,
    subscriptions_1000_to_1: f64,
    peak_memory_mb: f64,
    host: Host,
}

/// What the machine gives, beside which the figures stand
#[derive(Serialize)]
struct Host {
    fdatasyncs_per_second: f64,
    hmac_mb_per_second: f64,
    cores: usize,
}

struct Server {
    child: Child,
    at: std::net::SocketAddr,
}

impl Server {
    fn start(copies: usize) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .args(["serve", &copies.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        BufReader::new(out)
            .read_line(&mut line)
            .map_err(|e| e.to_string())?;
        let at = line
            .trim()
            .parse()
            .map_err(|_| "the server did not start".to_owned())?;
        Ok(Self { child, at })
    }

    fn proc(&self, file: &str) -> Result<String, String> {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))
            .map_err(|e| e.to_string())
    }

    /// User and system time in microseconds
    fn cpu(&self) -> Result<f64, String> {
        let stat = self.proc("stat")?;
        let fields: Vec<&str> = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.split(' ').collect())
            .unwrap_or_default();
        let ticks = |n: usize| {
            fields
                .get(n)
                .and_then(|f| f.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        // utime and stime, in ticks of 10 ms
        Ok((ticks(11) + ticks(12)) * 10_000.0)
    }

    fn peak_mb(&self) -> Result<f64, String> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kb = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        Ok(kb.unwrap_or(0.0) / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ = stdin.write_all(b"\n");
        }
        let _ = self.child.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn percentile(sorted: &[u32], share: f64) -> u32 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted
        .get(at.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}

/// Runs everything and prints the report
pub fn run(options: &Options) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let sequence = Arc::new(AtomicU64::new(1));
    let server = Server::start(1)?;
    let slice = |server: &Server, plan: &Arc<Plan>| -> Result<(f64, client::Slice), String> {
        let before = server.cpu()?;
        let slice = runtime
            .block_on(client::post(
                server.at,
                plan,
                options.connections,
                options.slice,
                &sequence,
            ))
            .map_err(|e| e.to_string())?;
        let cpu = (server.cpu()? - before) / (slice.answers + slice.others).max(1) as f64;
        if slice.others > 0 {
            return Err(format!("{} answers were not {}", slice.others, plan.expect));
        }
        Ok((cpu, slice))
    };
    let mut rows = Vec::new();
    let wanted = |name: &str, kind: &[&str]| {
        let given = options.only.iter().any(|o| kind.contains(&o.as_str()));
        !given || options.only.iter().any(|o| o == name)
    };
    let sizes = SIZES.map(|(name, _)| name);
    for (size, bytes) in SIZES {
        if !wanted(size, &sizes) {
            continue;
        }
        let plans: Vec<Arc<Plan>> = TARGETS.iter().map(|t| Arc::new(plan(t, bytes))).collect();
        let mut rounds: Vec<Vec<f64>> = Vec::new();
        let mut latencies: Vec<Vec<u32>> = vec![Vec::new(); TARGETS.len()];
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); TARGETS.len()];
        for _ in 0..options.rounds {
            let mut round = Vec::new();
            for (n, plan) in plans.iter().enumerate() {
                if !wanted(TARGETS[n], &TARGETS) {
                    round.push(f64::NAN);
                    continue;
                }
                let (cpu, slice) = slice(&server, plan)?;
                round.push(cpu);
                latencies[n].extend(slice.latencies);
                rates[n].push(slice.answers as f64 / slice.took.as_secs_f64());
            }
            rounds.push(round);
        }
        for (n, target) in TARGETS.iter().enumerate() {
            if !wanted(target, &TARGETS) {
                continue;
            }
            latencies[n].sort_unstable();
            let ratio = |to: usize| median(rounds.iter().map(|r| r[n] / r[to]).collect());
            rows.push(Row {
                size,
                target,
                cpu_us: median(rounds.iter().map(|r| r[n]).collect()),
                requests_per_second: median(rates[n].clone()),
                p50_us: percentile(&latencies[n], 0.50),
                p99_us: percentile(&latencies[n], 0.99),
                to_echo: ratio(0),
                to_verify: ratio(1),
                to_verify_parse: ratio(2),
            });
        }
    }
    let peak_memory_mb = server.peak_mb()?;
    let many = Server::start(1_000)?;
    let nonmatch = Arc::new(plan("nonmatch", 7_678));
    let mut ratios = Vec::new();
    for _ in 0..options.rounds {
        let (one, _) = slice(&server, &nonmatch)?;
        let (thousand, _) = slice(&many, &nonmatch)?;
        ratios.push(thousand / one);
    }
    let report = Report {
        rows,
        subscriptions_1000_to_1: median(ratios),
        peak_memory_mb,
        host: host()?,
    };
    print(&report, options.json)
}

fn host() -> Result<Host, String> {
    let mut file = tempfile::tempfile().map_err(|e| e.to_string())?;
    let began = Instant::now();
    let mut syncs = 0;
    while began.elapsed().as_millis() < 500 {
        file.write_all(&[0; 4096])
            .and_then(|()| file.sync_data())
            .map_err(|e| e.to_string())?;
        syncs += 1;
    }
    let fdatasyncs_per_second = f64::from(syncs) / began.elapsed().as_secs_f64();
    let mut request = Vec::new();
    let plan = plan("verify", 102_626);
    let began = Instant::now();
    for n in 0..500 {
        plan.request(n, &mut request);
    }
    Ok(Host {
        fdatasyncs_per_second,
        hmac_mb_per_second: 500.0 * 0.102_626 / began.elapsed().as_secs_f64(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

fn print(report: &Report, json: bool) -> Result<(), String> {
    if json {
        println!(
            "{}",
            serde_json::to_string(report).map_err(|e| e.to_string())?
        );
        return Ok(());
    }
    println!(
        "size   target         cpu-us   req/s    p50us   p99us  /echo  /verify  /verify_parse"
    );
    for row in &report.rows {
        println!(
            "{:<6} {:<13} {:>7.1} {:>8.0} {:>7} {:>7} {:>6.2} {:>8.2} {:>14.2}",
            row.size,
            row.target,
            row.cpu_us,
            row.requests_per_second,
            row.p50_us,
            row.p99_us,
            row.to_echo,
            row.to_verify,
            row.to_verify_parse
        );
    }
    println!(
        "1,000 admitted subscriptions to 1, nonmatch p8k, cpu: {:.2}",
        report.subscriptions_1000_to_1
    );
    println!("peak memory of the server: {:.0} MB", report.peak_memory_mb);
    println!(
        "host: {:.0} fdatasyncs/s, generator signs {:.0} MB/s, {} cores",
        report.host.fdatasyncs_per_second, report.host.hmac_mb_per_second, report.host.cores
    );
    Ok(())
}
