//! Monthly reports and what they count.

use app::sample::domain::Month;
use chrono::{DateTime, Days, Utc};
use serde_json::{Value, json};

use crate::tenant::{Tenant, at, patient_app};

impl Tenant<'_> {
    /// An invoice that was made at this moment.
    async fn invoice_of(&self, moment: DateTime<Utc>, amount: i64, currency: &str) -> Value {
        let new = json!({ "customer": "Initech", "amount_cents": amount, "currency": currency });
        let invoice = self.post("/invoices", &new).await.expect(201);
        let id = invoice["id"].as_str().unwrap();
        self.execute(format!(
            "update invoices set created_at = '{}' where id = '{id}'",
            moment.to_rfc3339()
        ))
        .await;
        invoice
    }

    async fn report(&self, month: &str) -> Value {
        self.get(&format!("/reports/monthly?month={month}"))
            .await
            .expect(200)
    }
}

fn moment(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_adds_up_per_currency_and_status() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    acme.invoice_of(moment("2020-01-31T23:59:59.999999Z"), 1, "EUR")
        .await;
    acme.invoice_of(moment("2020-02-01T00:00:00Z"), 10, "EUR").await;
    let half = acme
        .invoice_of(moment("2020-02-29T23:59:59.999999Z"), 20, "EUR")
        .await;
    acme.pay(&half, 5, "p1").await.expect(200);
    let paid = acme.invoice_of(moment("2020-02-10T12:00:00Z"), 40, "EUR").await;
    acme.pay(&paid, 40, "p2").await.expect(200);
    let void = acme.invoice_of(moment("2020-02-10T12:00:00Z"), 80, "USD").await;
    acme.patch(&at("/invoices", &void), &json!({ "status": "void" }))
        .await
        .expect(200);
    acme.invoice_of(moment("2020-03-01T00:00:00Z"), 160, "EUR").await;

    let total = |currency: &str, status: &str, invoices: i64, amount: i64, paid: i64| json!({ "currency": currency, "status": status, "invoices": invoices, "amount_cents": amount, "paid_cents": paid });
    let expected = json!({
        "month": "2020-02",
        "include_today": true,
        "totals": [total("EUR", "open", 2, 30, 5), total("EUR", "paid", 1, 40, 40), total("USD", "void", 1, 80, 0)],
    });
    assert_eq!(acme.report("2020-02").await, expected);
    assert_eq!(acme.report("2020-04").await["totals"], json!([]));
    for month in ["2020-13", "2020", "02-2020", "2020-2", ""] {
        acme.get(&format!("/reports/monthly?month={month}"))
            .await
            .problem(400, "invalid-query");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn today_counts_or_not_as_the_tenant_has_chosen() {
    let app = patient_app().await;
    let (acme, globex) = (Tenant::new(&app, "acme").await, Tenant::new(&app, "globex").await);
    let today = Utc::now().date_naive();
    let month = today.format("%Y-%m").to_string();
    acme.invoice(100).await;
    globex.invoice(100).await;
    let yesterday = today
        .checked_sub_days(Days::new(1))
        .unwrap()
        .and_hms_opt(12, 0, 0)
        .unwrap()
        .and_utc();
    acme.invoice_of(yesterday, 1, "EUR").await;

    let chosen = acme
        .put("/reports/settings", &json!({ "include_today": false }))
        .await
        .expect(200);
    assert_eq!(chosen, json!({ "include_today": false }));
    let (without, default) = (
        acme.report(&month).await,
        acme.get("/reports/monthly").await.expect(200),
    );
    let others = globex.report(&month).await;
    acme.put("/reports/settings", &json!({ "include_today": true }))
        .await
        .expect(200);
    let with = acme.report(&month).await;
    if Utc::now().date_naive() != today {
        // Midnight has passed meanwhile, and nobody can say which day was meant.
        return;
    }
    let amount = |report: &Value| -> i64 {
        report["totals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|total| total["amount_cents"].as_i64().unwrap())
            .sum()
    };
    // Yesterday may have been in another month.
    let before_today = i64::from(Month::of(yesterday.date_naive()) == Month::of(today));
    assert_eq!(
        (amount(&without), &without["include_today"]),
        (before_today, &json!(false))
    );
    assert_eq!(
        (amount(&with), &with["include_today"]),
        (before_today + 100, &json!(true))
    );
    assert_eq!(
        (amount(&others), &others["include_today"]),
        (100, &json!(true)),
        "the choice is acme's own"
    );
    assert_eq!(
        default, without,
        "the current month is the one that is meant when none is named"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_yes_or_no() {
    let app = patient_app().await;
    let acme = Tenant::new(&app, "acme").await;
    for wrong in [
        json!({}),
        json!({ "include_today": 1 }),
        json!({ "include_today": true, "more": 1 }),
    ] {
        acme.put("/reports/settings", &wrong)
            .await
            .problem(422, "invalid-body");
    }
    assert_eq!(acme.log().await, []);
}
