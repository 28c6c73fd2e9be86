//! Invoices, by both ways: what holds for one holds for the other.

use app::sample::{
    domain::InvoiceId,
    store::{RoutedError, RoutedInvoices},
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    common::{Answer, Responses},
    tenant::{Tenant, WAYS, at, new_invoice, patient_app},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_is_made_shown_listed_and_changed() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    for way in WAYS {
        let new = json!({ "customer": "Müller & Söhne", "amount_cents": 129_900, "currency": "EUR", "due_on": "2030-12-31" });
        let answer = acme.post(way, &new).await;
        let made = answer.expect(201);
        let path = at(way, &made);
        assert_eq!(answer.header("location"), format!("/v1{path}"));
        for (field, value) in new.as_object().unwrap() {
            assert_eq!(&made[field], value);
        }
        assert_eq!(
            (&made["status"], &made["paid_cents"]),
            (&json!("open"), &json!(0))
        );
        assert_eq!(made["created_at"], made["updated_at"]);

        assert_eq!(acme.get(&path).await.expect(200), made);
        assert_eq!(
            acme.get(&format!("{way}?limit=1")).await.expect(200)["items"],
            json!([made])
        );

        let changed = acme
            .patch(&path, &json!({ "customer": "Initrode", "due_on": null }))
            .await
            .expect(200);
        assert_eq!(
            (&changed["customer"], &changed["due_on"]),
            (&json!("Initrode"), &Value::Null)
        );
        assert_eq!(
            changed["amount_cents"], made["amount_cents"],
            "what was not named stays"
        );
        assert_ne!(changed["updated_at"], made["updated_at"]);
        let paid = acme.patch(&path, &json!({ "status": "paid" })).await.expect(200);
        assert_eq!(
            (&paid["status"], &paid["paid_cents"]),
            (&json!("paid"), &made["amount_cents"])
        );
        assert_eq!(acme.get(&path).await.expect(200), paid);
        assert_eq!(
            acme.get(&format!("{way}?status=paid&limit=1")).await.expect(200)["items"],
            json!([paid])
        );

        // The same again changes nothing; anything else comes too late.
        assert_eq!(
            acme.patch(&path, &json!({ "status": "paid" })).await.expect(200),
            paid
        );
        acme.patch(&path, &json!({ "status": "void" }))
            .await
            .problem(409, "conflict");
        acme.patch(&path, &json!({ "amount_cents": 1 }))
            .await
            .problem(409, "conflict");
    }
    // Both ways lead to the same invoices.
    let lists = (
        acme.get(WAYS[0]).await.expect(200),
        acme.get(WAYS[1]).await.expect(200),
    );
    assert_eq!(lists.0["items"].as_array().unwrap().len(), 2);
    assert_eq!(lists.0, lists.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_leads_through_all_invoices_once() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let mut ids = Vec::new();
    for amount in 0..7 {
        let invoice = acme.invoice(amount).await;
        if amount % 2 == 0 {
            acme.patch(&at("/invoices", &invoice), &json!({ "status": "void" }))
                .await
                .expect(200);
        }
        ids.insert(0, invoice["id"].clone());
    }
    for way in WAYS {
        let mut seen = Vec::new();
        let mut path = format!("{way}?limit=3");
        loop {
            let page = acme.get(&path).await.expect(200);
            seen.extend(
                page["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|invoice| invoice["id"].clone()),
            );
            let Some(cursor) = page["next_cursor"].as_str() else {
                break;
            };
            path = format!("{way}?limit=3&cursor={cursor}");
            // What is added meanwhile comes before the first page and shifts nothing.
            if seen.len() == 3 {
                let added = acme.invoice(100).await;
                acme.execute(format!(
                    "delete from invoices where id = '{}'",
                    added["id"].as_str().unwrap()
                ))
                .await;
            }
        }
        assert_eq!(seen, ids);

        // A full last page is the last page.
        let exact = acme.get(&format!("{way}?limit=7")).await.expect(200);
        assert_eq!(exact["next_cursor"], Value::Null);

        let void = acme.get(&format!("{way}?status=void&limit=3")).await.expect(200);
        let cursor = void["next_cursor"].as_str().unwrap();
        let rest = acme
            .get(&format!("{way}?status=void&limit=3&cursor={cursor}"))
            .await
            .expect(200);
        let amounts = |page: &Value| -> Vec<i64> {
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|invoice| invoice["amount_cents"].as_i64().unwrap())
                .collect()
        };
        assert_eq!((amounts(&void), amounts(&rest)), (vec![6, 4, 2], vec![0]));
        // A cursor of one list would skip invoices of another.
        acme.get(&format!("{way}?status=paid&cursor={cursor}"))
            .await
            .problem(400, "invalid-cursor");
        acme.get(&format!("/audit-log?cursor={cursor}"))
            .await
            .problem(400, "invalid-cursor");
        acme.get(&format!("{way}?status=lost"))
            .await
            .problem(400, "invalid-query");
        acme.get(&format!("{way}?limit=0"))
            .await
            .problem(400, "invalid-query");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_invoice_is_named() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let invoice = acme.invoice(1).await;
    for way in WAYS {
        for (field, value) in [
            ("customer", json!("")),
            ("customer", json!(" \t")),
            ("customer", json!("a\u{0}b")),
            ("customer", json!("x".repeat(201))),
            ("customer", json!(7)),
            ("amount_cents", json!(-1)),
            ("amount_cents", json!(1.5)),
            ("amount_cents", json!("100")),
            ("amount_cents", json!(1_000_000_000_001_i64)),
            ("amount_cents", json!(u64::MAX)),
            ("currency", json!("eur")),
            ("currency", json!("EURO")),
            ("due_on", json!("2026-02-30")),
            ("due_on", json!("tomorrow")),
            ("note", json!("not a field")),
        ] {
            let mut new = new_invoice(1);
            new[field] = value.clone();
            let problem = acme.post(way, &new).await.problem(422, "invalid-body");
            assert_eq!(problem["errors"][0]["field"], field, "{value}: {problem}");
        }
        for (change, part) in [
            (json!({}), "names no field"),
            (json!({ "status": "lost" }), "status: "),
            (json!({ "currency": "USD" }), "currency: "),
            (json!({ "paid_cents": 1 }), "paid_cents: "),
            (json!({ "customer": "" }), "customer: "),
        ] {
            let problem = acme
                .patch(&at(way, &invoice), &change)
                .await
                .problem(422, "invalid-body");
            assert!(
                problem["detail"].as_str().unwrap().contains(part),
                "{change}: {problem}"
            );
        }
        // The greatest and the least that can be.
        let new =
            json!({ "customer": "ß".repeat(200), "amount_cents": 1_000_000_000_000_i64, "currency": "XXX" });
        acme.post(way, &new).await.expect(201);
        acme.post(way, &new_invoice(0)).await.expect(201);
    }
}

/// What an answer says, apart from the request's own id.
fn essence(answer: &Answer) -> Value {
    let mut body = answer.problem(404, "not-found");
    body["instance"] = Value::Null;
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_invoice_is_none() {
    let app = patient_app().await;
    let (acme, globex) = (Tenant::new(&app, "acme").await, Tenant::new(&app, "globex").await);
    let invoice = acme.invoice(100).await;
    let change = json!({ "status": "void" });
    for way in WAYS {
        let nowhere = format!("{way}/{}", InvoiceId::generate());
        let unknown = essence(&globex.get(&nowhere).await);
        assert_eq!(essence(&globex.get(&at(way, &invoice)).await), unknown);
        assert_eq!(essence(&globex.get(&format!("{way}/not-an-id")).await), unknown);
        assert_eq!(essence(&globex.patch(&at(way, &invoice), &change).await), unknown);
        assert_eq!(globex.get(way).await.expect(200)["items"], json!([]));
    }
    globex.pay(&invoice, 100, "p1").await.problem(404, "not-found");
    assert_eq!(acme.get(&at("/invoices", &invoice)).await.expect(200), invoice);
    assert_eq!(globex.log().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_of_two_tenants_never_mix() {
    let app = patient_app().await;
    let (acme, globex) = (Tenant::new(&app, "acme").await, Tenant::new(&app, "globex").await);
    let requests = (0..40).map(|number| {
        let (tenant, way) = (
            if number % 2 == 0 { &acme } else { &globex },
            WAYS[number / 2 % 2],
        );
        async move {
            let made = tenant
                .post(way, &new_invoice(i64::try_from(number).unwrap()))
                .await
                .expect(201);
            assert_eq!(tenant.get(&at(way, &made)).await.expect(200), made);
        }
    });
    futures::future::join_all(requests).await;
    for (tenant, rest) in [(&acme, 0), (&globex, 1)] {
        let list = tenant.get("/invoices?limit=200").await.expect(200);
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), 20);
        assert!(
            items
                .iter()
                .all(|invoice| invoice["amount_cents"].as_i64().unwrap() % 2 == rest)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_read_cannot_write() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    let invoice = acme.invoice(100).await;
    for way in WAYS {
        app.v1(Method::GET, way, &acme.viewer).answer().await.expect(200);
        app.v1(Method::GET, &at(way, &invoice), &acme.viewer)
            .answer()
            .await
            .expect(200);
        // Refused before the body is looked at: what is wrong with it is nothing to them.
        for (method, path) in [(Method::POST, way.to_owned()), (Method::PATCH, at(way, &invoice))] {
            let request = app
                .v1(method, &path, &acme.viewer)
                .json(&json!({ "wrong": true }));
            request.answer().await.problem(403, "forbidden");
        }
    }
    for (method, path) in [
        (Method::POST, "/webhooks/payments"),
        (Method::PUT, "/profile"),
        (Method::PUT, "/reports/settings"),
    ] {
        app.v1(method, path, &acme.viewer)
            .json(&json!({}))
            .answer()
            .await
            .problem(403, "forbidden");
    }
    for path in ["/profile", "/reports/monthly", "/audit-log"] {
        app.v1(Method::GET, path, &acme.viewer).answer().await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_changes_at_once_one_comes_too_late() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    for _ in 0..10 {
        let invoice = acme.invoice(100).await;
        let (paid, void) = (json!({ "status": "paid" }), json!({ "status": "void" }));
        let (one, other) = (at(WAYS[0], &invoice), at(WAYS[1], &invoice));
        let (first, second) = tokio::join!(acme.patch(&one, &paid), acme.patch(&other, &void));
        let mut statuses = [first.status.as_u16(), second.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
        let winner = if first.status.is_success() { first } else { second };
        assert_eq!(
            acme.get(&at("/invoices", &invoice)).await.expect(200),
            winner.json()
        );
    }
}

#[tokio::test]
async fn a_routed_repository_without_a_request_is_an_error() {
    let found = RoutedInvoices.find(InvoiceId::generate()).await;
    assert!(matches!(found, Err(RoutedError::NoTenant(_))), "{found:?}");
}
