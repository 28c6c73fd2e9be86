//! The audit log: every write is in it, in the transaction of the write.

use serde_json::json;

use crate::tenant::{Tenant, at, patient_app};

#[tokio::test(flavor = "multi_thread")]
async fn every_write_says_who_did_what() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let invoice = acme.invoice(100).await;
    let path = at("/routed/invoices", &invoice);
    acme.patch(&path, &json!({ "customer": "Initrode" }))
        .await
        .expect(200);
    acme.patch(&path, &json!({ "customer": "Initrode" }))
        .await
        .expect(200);
    acme.pay(&invoice, 100, "p1").await.expect(200);
    acme.put("/profile", &json!({ "display_name": "Acme" }))
        .await
        .expect(200);
    acme.put("/reports/settings", &json!({ "include_today": false }))
        .await
        .expect(200);

    let id = &invoice["id"];
    let expected = [
        ("invoice.created", id.clone()),
        // Once: the second change changed nothing.
        ("invoice.changed", id.clone()),
        ("payment.received", json!("p1")),
        ("profile.changed", json!(null)),
        ("report-settings.changed", json!(null)),
    ];
    assert_eq!(
        acme.log().await,
        expected.map(|(action, subject)| (action.to_owned(), subject))
    );

    let principal = acme.get("/whoami").await.expect(200)["principal"].clone();
    let page = acme.get("/audit-log?limit=2").await.expect(200);
    let entries = page["items"].as_array().unwrap();
    assert!(
        entries
            .iter()
            .all(|entry| entry["principal"] == principal && entry["id"].is_string())
    );
    let next = acme
        .get(&format!(
            "/audit-log?limit=200&cursor={}",
            page["next_cursor"].as_str().unwrap()
        ))
        .await
        .expect(200);
    assert_eq!((entries.len(), next["items"].as_array().unwrap().len()), (2, 3));
    assert!(next["next_cursor"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_entry_cannot_be_made_does_not_happen() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let invoice = acme.invoice(100).await;
    acme.execute("revoke insert on audit_log from tenantry_tenant".to_owned())
        .await;
    acme.post("/invoices", &crate::tenant::new_invoice(1))
        .await
        .problem(500, "internal");
    acme.patch(&at("/invoices", &invoice), &json!({ "status": "void" }))
        .await
        .problem(500, "internal");
    acme.pay(&invoice, 1, "p1").await.problem(500, "internal");
    acme.put("/profile", &json!({ "display_name": "Acme" }))
        .await
        .problem(500, "internal");
    assert_eq!(acme.get("/invoices").await.expect(200)["items"], json!([invoice]));
    assert_eq!(acme.get("/profile").await.expect(200)["display_name"], "acme");
    acme.execute("grant insert on audit_log to tenantry_tenant".to_owned())
        .await;
    acme.pay(&invoice, 1, "p1").await.expect(200);
}
