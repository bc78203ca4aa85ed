//! The guard against replays, and what an acknowledgement promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use postern_gateway::Loaded;
use postern_gateway::store::{Options, Step, StoreFault};

use crate::world::{NOW, Setup, World, environment, opened, send, signed};

#[tokio::test]
async fn report_a29_a30_a_copy_commits_nothing_under_whatever_id() {
    let world = World::open(Setup::new());
    let first = world.deliver("d-1", &opened(1)).await;
    assert_eq!(first.status, 202);
    assert_eq!(first.events().len(), 1);
    for id in ["d-1", "d-2", ""] {
        let copy = world.deliver(id, &opened(1)).await;
        assert_eq!((copy.status, copy.events()), (200, first.events()), "{id}");
    }
    // The id again with another body is the provider's delivery again
    let bent = world.deliver("d-1", &opened(2)).await;
    assert_eq!((bent.status, bent.events()), (200, first.events()));
    assert_eq!(world.deliver("d-3", &opened(3)).await.status, 202);
    assert_eq!(world.reader().events(10).unwrap().len(), 2);
}

#[tokio::test]
async fn what_matched_nothing_may_be_delivered_again() {
    let world = World::open(Setup::new());
    let other = opened(1).replace("opened", "closed");
    assert_eq!(world.deliver("d-1", &other).await.status, 204);
    assert_eq!(world.deliver("d-1", &opened(1)).await.status, 202);
}

#[tokio::test]
async fn a_key_is_forgotten_after_the_window_and_the_same_event_is_still_one() {
    let world = World::open(Setup::new());
    let first = world.deliver("d-1", &opened(1)).await;
    // Seven days, the default window, and a second
    *world.clock.0.lock().unwrap() = NOW + 7 * 86_400 + 1;
    let again = world.deliver("d-1", &opened(1)).await;
    assert_eq!((again.status, again.events()), (200, first.events()));
    let fresh = world.deliver("d-2", &opened(1)).await;
    // The body's key was renewed with the answer before
    assert_eq!((fresh.status, fresh.events()), (200, first.events()));
    assert_eq!(world.reader().events(10).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn report_b32_fifty_parallel_copies_commit_one_event() {
    let world = World::open(Setup::new());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let router = world.router.clone();
        tasks.spawn(async move { send(router, signed("d-1", &opened(1))).await });
    }
    let answers = tasks.join_all().await;
    let mut statuses: Vec<u16> = answers.iter().map(|a| a.status).collect();
    statuses.sort_unstable();
    let mut expected = vec![200; 49];
    expected.push(202);
    assert_eq!(statuses, expected);
    assert!(answers.iter().all(|a| a.events() == answers[0].events()));
    let stored = world.reader().events(10).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].deliveries.len(), 1);
}

#[tokio::test]
async fn report_d36_a_store_that_cannot_commit_is_a_503_and_recovers() {
    for step in [
        Step::Judged,
        Step::BeforeAppend,
        Step::AfterAppend,
        Step::BeforeSync,
    ] {
        let broken = Arc::new(AtomicBool::new(true));
        let hook = Arc::clone(&broken);
        let mut setup = Setup::new();
        setup.options = Options::at_each_step(move |at| {
            if at == step && hook.load(Ordering::SeqCst) {
                return Err(StoreFault::Io(
                    "write",
                    "no space left on device".to_owned(),
                ));
            }
            Ok(())
        });
        // Dispatching asks the store too: without it, only the delivery comes to the step
        setup.destination = serde_json::json!({"kind": "command", "argv": ["true"]});
        setup.write_admission = true;
        let world = World::open(setup);
        let answer = world.deliver("d-1", &opened(1)).await;
        assert_eq!(answer.status, 503, "{step:?}");
        assert!(answer.headers.contains_key("retry-after"));
        assert!(world.reader().events(10).unwrap().is_empty());
        broken.store(false, Ordering::SeqCst);
        assert_eq!(
            world.deliver("d-1", &opened(1)).await.status,
            202,
            "{step:?}"
        );
        assert_eq!(world.reader().events(10).unwrap().len(), 1);
    }
}

async fn reload(world: &World) {
    let config = world.config.clone();
    let load = move || Loaded::new(&config, &environment);
    world.gateway.reload(load).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_pipe_among_the_admissions_is_named_and_the_old_state_goes_on() {
    let world = World::open(Setup::new());
    let pipe = world.dir().join("admissions/b.json");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let config = world.config.clone();
    let load = move || Loaded::new(&config, &environment).map_err(|faults| faults.0);
    let reloading = world.gateway.reload(load);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), reloading).await;
    let faults = ended.unwrap().unwrap().unwrap_err();
    let said: Vec<String> = faults.iter().map(|fault| fault.to_string()).collect();
    let expected = format!("`{}` cannot be read: no regular file", pipe.display());
    assert_eq!(said, [expected]);
    assert_eq!(world.deliver("d-1", &opened(1)).await.status, 202);
}

#[tokio::test]
async fn deliveries_are_received_while_a_reload_waits_for_its_files() {
    let world = World::open(Setup::new());
    let (go_on, told) = std::sync::mpsc::channel::<()>();
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let config = world.config.clone();
    let load = move || {
        let _ = begun.send(());
        // As on a disk that does not answer
        let _ = told.recv();
        Loaded::new(&config, &environment)
    };
    let receiving = async {
        begins.recv().await.unwrap();
        let answer = world.deliver("d-1", &opened(1)).await;
        go_on.send(()).unwrap();
        answer.status
    };
    let (reloaded, status) = tokio::join!(world.gateway.reload(load), receiving);
    assert_eq!(status, 202);
    reloaded.unwrap().unwrap();
}

#[tokio::test]
async fn a_reload_keeps_what_is_queued_and_revoking_ends_it() {
    let world = World::open(Setup::new());
    assert_eq!(world.deliver("d-1", &opened(1)).await.status, 202);
    let digest = world.reader().events(1).unwrap()[0].deliveries[0].subscription;
    assert_eq!(digest, world.subscription);
    reload(&world).await;
    assert_eq!(world.deliver("d-2", &opened(2)).await.status, 202);
    std::fs::remove_file(world.dir().join("admissions/a.json")).unwrap();
    reload(&world).await;
    assert_eq!(world.deliver("d-3", &opened(3)).await.status, 204);
    let queued = world.reader().deliveries(None, 10).unwrap();
    assert!(
        queued.iter().all(|d| d.subscription == digest),
        "the digest it was matched under"
    );
    assert_eq!(queued.len(), 2);
}

#[tokio::test]
async fn signed_json_sent_again_as_a_form_makes_no_event() {
    // The text of a genuine delivery is somebody's; the content type is not signed
    let world = World::open(Setup::new());
    let inner = "&payload=%7B%22action%22%3A%22opened%22%2C%22repository%22%3A%7B%22full_name%22%3A%22o%2Fr%22%7D%7D&";
    let body =
        format!(r#"{{"action":"closed","text":"{inner}","repository":{{"full_name":"o/r"}}}}"#);
    let mut request = signed("d-1", &body);
    let form = "application/x-www-form-urlencoded".parse().unwrap();
    request.headers_mut().insert("content-type", form);
    assert_eq!(world.send(request).await.status, 204);
}
