//! An outage: says once that something fails, and once that it works again and how often it has failed in
//! between, however often it is tried. What it says is for the operator; what failed is counted elsewhere.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether one thing works
#[derive(Debug)]
pub struct Outage {
    what: &'static str,
    failed: AtomicU64,
}

impl Outage {
    /// Of `what`, which works so far
    pub const fn of(what: &'static str) -> Self {
        Self {
            what,
            failed: AtomicU64::new(0),
        }
    }

    /// It has failed so many times more
    pub fn fails(&self, times: u64, why: &dyn Display) {
        if times > 0 && self.failed.fetch_add(times, Ordering::Relaxed) == 0 {
            tracing::error!(error = %why, "{} fails; the next message is that it works", self.what);
        }
    }

    /// It has worked
    pub fn works(&self) {
        // Read first: nearly always there is nothing to say, and nothing to write
        if self.failed.load(Ordering::Relaxed) > 0 {
            let failed = self.failed.swap(0, Ordering::Relaxed);
            if failed > 0 {
                tracing::info!(failed, "{} works again", self.what);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// What is said on this thread while `work` runs, a line a message
    pub(crate) fn said(work: impl FnOnce()) -> Vec<String> {
        #[derive(Clone, Default)]
        struct Kept(Arc<Mutex<Vec<u8>>>);
        impl std::io::Write for Kept {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_target(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        let bytes = kept.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn an_outage_is_said_once_at_each_end_with_its_count() {
        let outage = Outage::of("the disk");
        let messages = said(|| {
            outage.works();
            for n in 0..100 {
                outage.fails(1, &format!("fault {n}"));
            }
            outage.works();
            outage.works();
            outage.fails(0, &"nothing was lost");
        });
        assert_eq!(
            messages,
            [
                "ERROR the disk fails; the next message is that it works error=fault 0",
                "INFO the disk works again failed=100",
            ]
        );
    }
}
