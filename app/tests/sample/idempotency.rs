//! `Idempotency-Key` on `POST /v1/invoices`: the answer is kept where the invoice is.

use serde_json::{Value, json};

use crate::{
    common::{Answer, Responses},
    tenant::{Tenant, WAYS, new_invoice, patient_app},
};

impl Tenant<'_> {
    async fn post_named(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.request(reqwest::Method::POST, path)
            .header("idempotency-key", key)
            .json(body)
            .answer()
            .await
    }

    async fn invoices(&self) -> usize {
        self.get("/invoices?limit=200").await.expect(200)["items"]
            .as_array()
            .unwrap()
            .len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_again_gets_the_same_answer() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    for way in WAYS {
        let first = acme.post_named(way, way, &new_invoice(100)).await;
        first.expect(201);
        assert_eq!(first.header("idempotency-replayed"), "");
        // What has become of the invoice since does not change the answer.
        acme.patch(
            &crate::tenant::at(way, &first.json()),
            &json!({ "status": "void" }),
        )
        .await
        .expect(200);
        let differently_written =
            json!({ "due_on": null, "currency": "EUR", "amount_cents": 100, "customer": "Initech" });
        let again = acme.post_named(way, way, &differently_written).await;
        again.expect(201);
        assert_eq!(
            (&again.text, again.header("location")),
            (&first.text, first.header("location"))
        );
        assert_eq!(again.header("idempotency-replayed"), "true");
        acme.post_named(way, way, &new_invoice(101))
            .await
            .problem(422, "idempotency-key-reused");
    }
    assert_eq!(acme.invoices().await, 2);
    assert_eq!(
        acme.log()
            .await
            .iter()
            .filter(|(action, _)| action == "invoice.created")
            .count(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_done_once() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let body = new_invoice(100);
    let posts = (0..20).map(|number| acme.post_named(WAYS[number % 2], "at-once", &body));
    let answers = futures::future::join_all(posts).await;
    let ids: std::collections::BTreeSet<String> = answers
        .iter()
        .map(|answer| answer.expect(201)["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((ids.len(), acme.invoices().await), (1, 1));
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.header("idempotency-replayed") == "true")
            .count(),
        19
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_a_tenants_own() {
    let app = patient_app().await;
    let (acme, globex) = (Tenant::new(&app, "acme").await, Tenant::new(&app, "globex").await);
    let one = acme
        .post_named("/invoices", "k", &new_invoice(100))
        .await
        .expect(201);
    let other = globex
        .post_named("/invoices", "k", &new_invoice(200))
        .await
        .expect(201);
    assert_ne!(one["id"], other["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_does_not_use_up_its_key() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    acme.post_named("/invoices", "k", &new_invoice(-1))
        .await
        .problem(422, "invalid-body");
    acme.post_named("/invoices", "k", &new_invoice(1))
        .await
        .expect(201);
    for key in ["", "a b", &"k".repeat(256)] {
        acme.post_named("/invoices", key, &new_invoice(1))
            .await
            .problem(400, "invalid-idempotency-key");
    }
    acme.post_named("/invoices", &"k".repeat(255), &new_invoice(1))
        .await
        .expect(201);
    assert_eq!(acme.invoices().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_free_again_after_a_day() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    for key in ["k1", "k2", "k3"] {
        acme.post_named("/invoices", key, &new_invoice(1))
            .await
            .expect(201);
    }
    let nearly = "update idempotency_keys set created_at = now() - interval '23 hours 59 minutes'";
    acme.execute(nearly.to_owned()).await;
    acme.post_named("/invoices", "k1", &new_invoice(2))
        .await
        .problem(422, "idempotency-key-reused");

    acme.execute("update idempotency_keys set created_at = now() - interval '25 hours'".to_owned())
        .await;
    acme.post_named("/invoices", "k1", &new_invoice(2))
        .await
        .expect(201);
    let again = acme.post_named("/invoices", "k1", &new_invoice(2)).await;
    assert_eq!(
        (again.status.as_u16(), again.header("idempotency-replayed")),
        (201, "true")
    );
    // Old ones are cleared away on the occasion: this fails if there are any.
    acme.execute("alter table idempotency_keys add constraint only_k1 check (key = 'k1')".to_owned())
        .await;
}
