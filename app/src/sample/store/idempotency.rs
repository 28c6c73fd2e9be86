//! What creating requests were answered, so that the same request again is answered the same and done once.
//!
//! The answer is written in the transaction that does what was asked for: there is no moment in which one is there without
//! the other. A request whose twin is still at work waits until the twin's transaction has ended.

use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::types::Json;
use tenant_management::data::WriteTransaction;

use super::error::CreateInvoiceError;
use crate::{
    http::idempotency::IdempotencyKey,
    sample::domain::{Invoice, NewInvoice},
};

/// What a request asks for: the same for two requests that ask for the same, whatever their JSON looks like.
fn fingerprint(request: &NewInvoice) -> [u8; 32] {
    #[derive(Serialize)]
    struct Request<'r> {
        operation: &'static str,
        body: &'r NewInvoice,
    }
    let request = Request {
        operation: "create-invoice",
        body: request,
    };
    let bytes = serde_json::to_vec(&request).expect("the request was made from JSON");
    Sha256::digest(bytes).into()
}

/// Takes the key for this transaction. Answers the invoice when the request was answered before.
pub(super) async fn claim(
    tx: &mut WriteTransaction,
    key: &IdempotencyKey,
    request: &NewInvoice,
) -> Result<Option<Invoice>, CreateInvoiceError> {
    let fingerprint = fingerprint(request);
    if insert(tx, key, fingerprint).await? {
        return Ok(None);
    }
    let earlier = sqlx::query!(
        r#"
        select fingerprint, response as "response: Json<Invoice>"
        from idempotency_keys
        where key = $1
        "#,
        key.as_str(),
    )
    .fetch_one(tx)
    .await?;
    match earlier.response {
        Some(Json(invoice)) if earlier.fingerprint == fingerprint => Ok(Some(invoice)),
        _ => Err(CreateInvoiceError::KeyTaken),
    }
}

/// Whether the key is free and now taken. Keys of more than a day ago are free again, and a few of them are removed each
/// time, so that the table does not grow for ever.
async fn insert(
    tx: &mut WriteTransaction,
    key: &IdempotencyKey,
    fingerprint: [u8; 32],
) -> sqlx::Result<bool> {
    let inserted = sqlx::query!(
        r#"
        with expired as (
            select key
            from idempotency_keys
            where created_at < now() - interval '1 day' and key <> $1
            order by created_at
            limit 10
            for update skip locked
        ), removed as (
            delete from idempotency_keys where key in (select key from expired)
        )
        insert into idempotency_keys as earlier (key, fingerprint)
        values ($1, $2)
        on conflict (key) do update
        set fingerprint = excluded.fingerprint, response = null, created_at = now()
        where earlier.created_at < now() - interval '1 day'
        "#,
        key.as_str(),
        &fingerprint[..],
    )
    .execute(tx)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Keeps the answer of the transaction that took the key.
pub(super) async fn keep(
    tx: &mut WriteTransaction,
    key: &IdempotencyKey,
    answer: &Invoice,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update idempotency_keys set response = $2 where key = $1",
        key.as_str(),
        Json(answer) as _,
    )
    .execute(tx)
    .await
    .map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, from_value, json};

    use super::*;

    #[test]
    fn the_fingerprint_is_of_what_is_asked_for_and_not_of_how() {
        let plain: NewInvoice =
            from_str(r#"{"customer": "a", "amount_cents": 1, "currency": "EUR"}"#).unwrap();
        let other: NewInvoice =
            from_str(r#"{"currency":"EUR","due_on":null,"amount_cents":1,"customer":"\u0061"}"#).unwrap();
        assert_eq!(fingerprint(&plain), fingerprint(&other));
        let dearer: NewInvoice =
            from_value(json!({"customer": "a", "amount_cents": 2, "currency": "EUR"})).unwrap();
        assert_ne!(fingerprint(&plain), fingerprint(&dearer));
    }
}
