//! `POST /v1/webhooks/payments`

use auth::{Member, TenantAccess};

use crate::{
    http::{json::Json, problem::Problem},
    sample::{
        domain::{Payment, RecordedPayment},
        store::Payments,
    },
};

/// Report a payment
///
/// For payment services, which report again until they are answered: the same payment again changes nothing and is answered
/// like the first time. A payment may be less than what is left to pay, and never more; the last one settles the invoice.
#[utoipa::path(post, path = "/webhooks/payments", tag = "payments", operation_id = "receive_payment",
    request_body = Payment,
    responses((status = OK, description = "The payment is recorded, now or since it was first reported", body = RecordedPayment))
)]
pub(super) async fn receive(
    access: TenantAccess<Member>,
    Json(payment): Json<Payment>,
) -> Result<Json<RecordedPayment>, Problem> {
    Ok(Json(
        Payments::new(&access.db)
            .record(&payment, &access.principal)
            .await?,
    ))
}
