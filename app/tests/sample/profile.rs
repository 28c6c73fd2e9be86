//! The profile.

use serde_json::{Value, json};

use crate::tenant::{Tenant, patient_app};

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_written_as_a_whole() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let unwritten = json!({ "display_name": "acme", "notification_email": null, "updated_at": null });
    assert_eq!(acme.get("/profile").await.expect(200), unwritten);

    let draft = json!({ "display_name": "Acme Corporation", "notification_email": "billing@acme.example" });
    let written = acme.put("/profile", &draft).await.expect(200);
    assert_eq!(
        (&written["display_name"], &written["notification_email"]),
        (&draft["display_name"], &draft["notification_email"])
    );
    assert_eq!(acme.get("/profile").await.expect(200), written);

    // What is left out is gone.
    let shorter = acme
        .put("/profile", &json!({ "display_name": "Acme" }))
        .await
        .expect(200);
    assert_eq!(
        (&shorter["display_name"], &shorter["notification_email"]),
        (&json!("Acme"), &Value::Null)
    );
    assert_ne!(shorter["updated_at"], written["updated_at"]);
    assert_eq!(acme.log().await.len(), 2);

    for (field, value) in [
        ("display_name", json!("")),
        ("display_name", json!("a\nb")),
        ("display_name", json!(null)),
        ("notification_email", json!("nowhere")),
        ("notification_email", json!("a b@c")),
    ] {
        let mut wrong = draft.clone();
        wrong[field] = value.clone();
        let problem = acme.put("/profile", &wrong).await.problem(422, "invalid-body");
        assert_eq!(problem["errors"][0]["field"], field, "{value}");
    }
    assert_eq!(acme.get("/profile").await.expect(200), shorter);
}
