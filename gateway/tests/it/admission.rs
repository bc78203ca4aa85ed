//! Every part that a dispatch needs, and that nothing is owed where one is missing.

use postern_contract::{Digest, Scalar};
use serde_json::{Value, json};

use crate::world::{NOW, Setup, World, opened};

/// The status of one matching delivery, and why its subscription got nothing
async fn outcome(bend: impl FnOnce(&mut Setup), body: &str) -> (u16, Option<String>) {
    let mut setup = Setup::new();
    bend(&mut setup);
    let world = World::open(setup);
    let answer = world.deliver("d-1", body).await;
    let line = world.last_line();
    let why = (line.candidates.iter())
        .flat_map(|candidate| &candidate.subscriptions)
        .find_map(|subscription| subscription.why.clone());
    (answer.status, why)
}

async fn refused(bend: impl FnOnce(&mut Setup)) -> String {
    let (status, why) = outcome(bend, &opened(1)).await;
    assert_eq!(status, 204);
    why.unwrap_or_else(|| "no candidate".to_owned())
}

#[tokio::test]
async fn cs_8_05_with_every_part_the_delivery_is_owed() {
    assert_eq!(outcome(|_| {}, &opened(1)).await, (202, None));
}

#[tokio::test]
async fn cs_8_05_no_admission() {
    assert_eq!(refused(|s| s.write_admission = false).await, "no-admission");
    let other = Digest::of(b"another").to_string();
    assert_eq!(
        refused(|s| s.admission = json!({"subscriptionDigest": other})).await,
        "no-admission"
    );
    assert_eq!(
        refused(|s| s.admission = json!({"source": "elsewhere"})).await,
        "no-admission"
    );
}

#[tokio::test]
async fn cs_8_05_no_opt_in_of_the_repository() {
    let blank = json!({"optIn": {"by": " ", "at": "2026-01-01T00:00:00Z"}});
    assert_eq!(refused(|s| s.admission = blank).await, "no-opt-in");
    let later = json!({"optIn": {"by": "alice", "at": "2030-01-01T00:00:00Z"}});
    assert_eq!(refused(|s| s.admission = later).await, "no-opt-in");
}

#[tokio::test]
async fn cs_8_05_another_repository() {
    assert_eq!(
        refused(|s| s.admission = json!({"repository": "o/other"})).await,
        "other-repository"
    );
    // A subscription that names none cannot be admitted by any
    let none = refused(|s| s.subscription = json!({"repository": null})).await;
    assert_eq!(none, "other-repository");
}

#[tokio::test]
async fn cs_8_05_an_admission_whose_time_is_over() {
    let at = |second: i64| {
        postern_contract::Timestamp::from_unix(second)
            .unwrap()
            .to_string()
    };
    let expires = |second| json!({"expires": at(second)});
    assert_eq!(
        refused(|s| s.admission = expires(NOW)).await,
        "admission-expired"
    );
    assert_eq!(
        outcome(|s| s.admission = expires(NOW + 1), &opened(1))
            .await
            .0,
        202
    );
}

#[tokio::test]
async fn cs_8_05_no_destination() {
    assert_eq!(
        refused(|s| s.admission = json!({"destination": "nowhere"})).await,
        "no-destination"
    );
}

#[tokio::test]
async fn cs_8_05_digests_that_do_not_agree() {
    let other = Digest::of(b"another").to_string();
    assert_eq!(refused(|s| s.write_trigger = false).await, "no candidate");
    let bend = |key: &str| json!({ key: other });
    assert_eq!(
        refused(|s| s.subscription = bend("binding")).await,
        "other-trigger"
    );
    assert_eq!(
        refused(|s| s.subscription = bend("profileDigest")).await,
        "other-trigger"
    );
    assert_eq!(
        refused(|s| s.subscription = bend("triggerDigest")).await,
        "no candidate"
    );
    assert_eq!(
        refused(|s| s.subscription = json!({"trigger": "issue-closed"})).await,
        "other-trigger"
    );
    // Trigger and subscription agree on a profile that the source does not verify by
    let compiled = |s: &mut Setup| s.profile_digest = Digest::of(b"an older profile");
    assert_eq!(refused(compiled).await, "other-profile");
}

#[tokio::test]
async fn cs_8_05_cs_8_03_grants_past_the_source() {
    let wider = |s: &mut Setup| {
        let more = Scalar::String("o/more".to_owned());
        s.grants.get_mut("repositories").unwrap().push(more);
    };
    assert_eq!(refused(wider).await, "wider-grants");
    let origins = |s: &mut Setup| s.source["grants"]["origins"] = json!([]);
    assert_eq!(refused(origins).await, "wider-grants");
    let none = |s: &mut Setup| s.source["grants"] = json!({});
    assert_eq!(refused(none).await, "wider-grants");
}

fn as_app(s: &mut Setup) {
    s.destination["app"] = json!(7);
    s.destination["installation"] = json!(70);
}

#[tokio::test]
async fn cs_8_05_the_destinations_app_and_installation() {
    assert_eq!(refused(as_app).await, "other-app");
    let with = |admission: Value| {
        move |s: &mut Setup| {
            as_app(s);
            s.admission = admission;
        }
    };
    assert_eq!(
        refused(with(json!({"app": 8, "installation": 70}))).await,
        "other-app"
    );
    assert_eq!(
        refused(with(json!({"app": 7, "installation": 71}))).await,
        "other-installation"
    );
    let right = with(json!({"app": 7, "installation": 70}));
    assert_eq!(outcome(right, &opened(1)).await.0, 202);
}

#[tokio::test]
async fn cs_8_05_the_installation_in_an_apps_evidence() {
    let bend = |admission: Value| {
        move |s: &mut Setup| {
            s.source["app"] = json!(7);
            s.admission = admission;
        }
    };
    let right = || bend(json!({"app": 7, "installation": 70}));
    let with = |installation: &str| {
        opened(1).replacen('{', &format!("{{\"installation\":{installation},"), 1)
    };
    assert_eq!(outcome(right(), &with(r#"{"id":70}"#)).await.0, 202);
    for (installation, why) in [
        (r#"{"id":71}"#, "foreign-installation"),
        (r#"{"id":"70"}"#, "no-installation"),
        (r#"{"id":70.5}"#, "no-installation"),
        (r#"{"id":null}"#, "no-installation"),
        ("{}", "no-installation"),
    ] {
        let (status, got) = outcome(right(), &with(installation)).await;
        assert_eq!((status, got.as_deref()), (204, Some(why)), "{installation}");
    }
    assert_eq!(refused(right()).await, "no-installation");
    assert_eq!(
        refused(bend(json!({"app": 8, "installation": 70}))).await,
        "other-app"
    );
    assert_eq!(refused(bend(json!({}))).await, "other-app");
}

#[tokio::test]
async fn cs_8_03_a_chosen_filter_only_narrows() {
    let label = |s: &mut Setup| s.subscription = json!({"filters": {"label": ["bug", "crash"]}});
    let with = |label: &str| opened(1).replacen('{', &format!("{{\"label\":\"{label}\","), 1);
    assert_eq!(outcome(label, &with("bug")).await.0, 202);
    let (status, why) = outcome(label, &with("other")).await;
    assert_eq!((status, why.as_deref()), (204, Some("filter-not-true")));
    assert_eq!(outcome(label, &opened(1)).await.0, 204);
    // A filter that the trigger does not offer lets nothing through
    let unknown = |s: &mut Setup| s.subscription = json!({"filters": {"colour": "red"}});
    assert_eq!(refused(unknown).await, "other-filters");
}
