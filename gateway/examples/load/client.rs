//! The generator: keep-alive connections that post prepared requests as fast as they are answered, and
//! count anything but the expected status as a failure.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::payload::Plan;

/// What one slice of load showed
#[derive(Default)]
pub struct Slice {
    /// Answers with the expected status
    pub answers: u64,
    /// Other answers
    pub others: u64,
    /// Microseconds of each answer, unsorted
    pub latencies: Vec<u32>,
    /// From the first request to the last answer
    pub took: Duration,
}

/// Posts `plan` on `connections` connections for `length`
pub async fn post(
    to: SocketAddr,
    plan: &Arc<Plan>,
    connections: usize,
    length: Duration,
    sequence: &Arc<AtomicU64>,
) -> std::io::Result<Slice> {
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (plan, sequence) = (Arc::clone(plan), Arc::clone(sequence));
        tasks.spawn(async move { connection(to, &plan, began + length, &sequence).await });
    }
    let mut whole = Slice::default();
    while let Some(joined) = tasks.join_next().await {
        let part = joined.map_err(std::io::Error::other)??;
        whole.answers += part.answers;
        whole.others += part.others;
        whole.latencies.extend(part.latencies);
    }
    whole.took = began.elapsed();
    Ok(whole)
}

async fn connection(
    to: SocketAddr,
    plan: &Plan,
    end: Instant,
    sequence: &AtomicU64,
) -> std::io::Result<Slice> {
    let mut stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let mut slice = Slice::default();
    let mut request = Vec::new();
    let mut answer = Vec::new();
    while Instant::now() < end {
        plan.request(sequence.fetch_add(1, Ordering::Relaxed), &mut request);
        let began = Instant::now();
        stream.write_all(&request).await?;
        let status = read_answer(&mut stream, &mut answer).await?;
        slice
            .latencies
            .push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        if status == plan.expect {
            slice.answers += 1;
        } else {
            slice.others += 1;
        }
    }
    Ok(slice)
}

/// Reads one response with a Content-Length or none, and gives its status
async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<u16> {
    buffer.clear();
    let broken = || std::io::Error::other("the server's answer is no HTTP/1.1");
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(std::io::Error::other("the server closed the connection"));
        }
        let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let head = std::str::from_utf8(&buffer[..end]).map_err(|_| broken())?;
        let status = head.get(9..12).and_then(|s| s.parse().ok());
        let length: usize = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(Some(0), |(_, value)| value.trim().parse().ok())
            .ok_or_else(broken)?;
        let mut body = buffer.len() - (end + 4);
        let mut rest = [0; 4096];
        while body < length {
            let n = stream.read(&mut rest).await?;
            if n == 0 {
                return Err(broken());
            }
            body += n;
        }
        return status.ok_or_else(broken);
    }
}
