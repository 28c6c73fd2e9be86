//! The payments webhook: reported again and again, recorded once.

use serde_json::{Value, json};

use crate::tenant::{Tenant, at, patient_app};

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_counts_once() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let (invoice, other) = (acme.invoice(100).await, acme.invoice(100).await);
    let first = acme.pay(&invoice, 60, "p1").await.expect(200);
    assert_eq!(
        (&first["invoice_id"], &first["amount_cents"], &first["reference"]),
        (&invoice["id"], &json!(60), &json!("p1"))
    );
    assert_eq!(acme.pay(&invoice, 60, "p1").await.expect(200), first);
    let now = acme.get(&at("/invoices", &invoice)).await.expect(200);
    assert_eq!((&now["paid_cents"], &now["status"]), (&json!(60), &json!("open")));

    acme.pay(&invoice, 61, "p1").await.problem(409, "conflict");
    acme.pay(&other, 60, "p1").await.problem(409, "conflict");

    acme.pay(&invoice, 40, "p2").await.expect(200);
    let now = acme.get(&at("/invoices", &invoice)).await.expect(200);
    assert_eq!(
        (&now["paid_cents"], &now["status"]),
        (&json!(100), &json!("paid"))
    );
    // The repetition of a payment is answered like the first time, whatever the invoice is now.
    assert_eq!(acme.pay(&invoice, 60, "p1").await.expect(200), first);
    let payments: Vec<_> = acme
        .log()
        .await
        .into_iter()
        .filter(|(action, _)| action == "payment.received")
        .collect();
    assert_eq!(
        payments,
        [
            ("payment.received".to_owned(), json!("p1")),
            ("payment.received".to_owned(), json!("p2"))
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let (open, void) = (acme.invoice(100).await, acme.invoice(100).await);
    acme.patch(&at("/invoices", &void), &json!({ "status": "void" }))
        .await
        .expect(200);
    let before = acme.log().await;

    let refusal = acme.pay(&open, 101, "p1").await.problem(409, "conflict");
    assert!(refusal["detail"].as_str().unwrap().contains("100"), "{refusal}");
    acme.pay(&void, 1, "p1").await.problem(409, "conflict");
    acme.pay(&json!({ "id": "00000000-0000-0000-0000-000000000000" }), 1, "p1")
        .await
        .problem(404, "not-found");
    for (field, value) in [
        ("amount_cents", json!(0)),
        ("amount_cents", json!(-1)),
        ("reference", json!("")),
        ("reference", json!("a\u{0}")),
        ("invoice_id", json!("abc")),
    ] {
        let mut payment = json!({ "invoice_id": open["id"], "amount_cents": 1, "reference": "p1" });
        payment[field] = value;
        let problem = acme
            .post("/webhooks/payments", &payment)
            .await
            .problem(422, "invalid-body");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    assert_eq!(acme.get(&at("/invoices", &open)).await.expect(200), open);
    assert_eq!(acme.log().await, before);
    // The reference was not used up by any of it.
    acme.pay(&open, 100, "p1").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_reports_at_once_count_once() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let invoice = acme.invoice(100).await;
    let answers = futures::future::join_all((0..20).map(|_| acme.pay(&invoice, 30, "p1"))).await;
    let first = answers[0].expect(200);
    assert!(answers.iter().all(|answer| answer.expect(200) == first));
    assert_eq!(
        acme.get(&at("/invoices", &invoice)).await.expect(200)["paid_cents"],
        30
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_payments_at_once_never_overpay() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let invoice = acme.invoice(100).await;
    let references: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let answers = futures::future::join_all(
        references
            .iter()
            .map(|reference| acme.pay(&invoice, 30, reference)),
    )
    .await;
    let accepted = answers.iter().filter(|answer| answer.status.is_success()).count();
    let refused = answers
        .iter()
        .filter(|answer| answer.status.as_u16() == 409)
        .count();
    assert_eq!((accepted, refused), (3, 17));
    assert_eq!(
        acme.get(&at("/invoices", &invoice)).await.expect(200)["paid_cents"],
        90
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_reference_for_two_invoices_at_once_is_one_payment() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    for round in 0..10 {
        let (one, other) = (acme.invoice(100).await, acme.invoice(100).await);
        let reference = format!("p{round}");
        let (first, second) = tokio::join!(acme.pay(&one, 10, &reference), acme.pay(&other, 10, &reference));
        let mut statuses = [first.status.as_u16(), second.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
        let mut paid: i64 = 0;
        for invoice in [&one, &other] {
            let now: Value = acme.get(&at("/invoices", invoice)).await.expect(200);
            paid += now["paid_cents"].as_i64().unwrap();
        }
        assert_eq!(paid, 10);
    }
}
