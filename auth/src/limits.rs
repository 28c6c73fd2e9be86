//! How much one tenant may ask of one instance: requests per second, and requests at the same time.
//!
//! What is over the limit is refused at once, so that a tenant at its limit takes nothing from the others. Only requests that
//! were let in count: a stranger cannot use up a tenant's allowance. A request takes its place when its handler begins to work; one
//! whose body is still on its way has none, however slowly it comes. Refuses to know how a refusal is worded.

use std::{
    fmt,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::response::Response;
use governor::{
    DefaultDirectRateLimiter, Quota, RateLimiter, clock::Clock, clock::DefaultClock,
    middleware::StateInformationMiddleware,
};
use http::{HeaderName, HeaderValue, Method, Request, request::Parts};
use moka::sync::Cache;
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tenant_management::TenantUuid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service};

use crate::error::AuthError;

/// What a tenant may ask for, as draft-ietf-httpapi-ratelimit-headers words it.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// What is left of it.
const STATE: HeaderName = HeaderName::from_static("ratelimit");
/// The name of the policy.
const NAME: &str = "tenant";
/// When somebody who asks for too much at the same time should try again: most requests are over by then.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Tenants that are remembered; those that were quiet longest go first.
const TENANTS: u64 = 100_000;
/// How long a quiet tenant is remembered: longer than any request lasts, and than any allowance takes to be whole again.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The limits of each tenant, on one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Requests per second in the long run; `None`: any number.
    pub per_second: Option<NonZeroU32>,
    /// Requests at once after a quiet time.
    pub burst: NonZeroU32,
    /// Requests at the same time; `None`: any number.
    pub concurrent: Option<NonZeroU32>,
}

impl TenantLimits {
    /// No limits.
    pub const NONE: Self = Self {
        per_second: None,
        burst: NonZeroU32::MIN,
        concurrent: None,
    };
}

/// Counts the requests of all tenants. A clone is cheap.
#[derive(Clone)]
pub(crate) struct Limiters(Arc<Shared>);

struct Shared {
    limits: TenantLimits,
    tenants: Cache<TenantUuid, Arc<Limiter>>,
}

type Rate = DefaultDirectRateLimiter<StateInformationMiddleware>;

/// What one tenant has asked for lately.
struct Limiter {
    rate: Option<Rate>,
    places: Option<Arc<Semaphore>>,
}

/// Where a request's place is kept, from when it is taken until the answer is made. [`LimitLayer`] puts one into each request.
#[derive(Clone, Default)]
pub struct LimitSlot(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    limiter: Option<Arc<Limiter>>,
    place: Option<OwnedSemaphorePermit>,
    state: Option<State>,
}

/// What is left of a tenant's allowance.
#[derive(Clone, Copy)]
struct State {
    remaining: u32,
    whole_in: Duration,
}

impl Limiters {
    pub(crate) fn new(limits: TenantLimits) -> Self {
        Self(Arc::new(Shared {
            limits,
            tenants: Cache::builder()
                .max_capacity(TENANTS)
                .time_to_idle(REMEMBERED)
                .build(),
        }))
    }

    /// Counts a request that is let in. Twice for the same request counts once.
    pub(crate) fn enter(&self, parts: &Parts, tenant: TenantUuid) -> Result<(), AuthError> {
        let limits = self.0.limits;
        if limits.per_second.is_none() && limits.concurrent.is_none() {
            return Ok(());
        }
        let slot = parts.extensions.get::<LimitSlot>().ok_or(AuthError::NoSession)?;
        let mut slot = slot.0.lock();
        if slot.limiter.is_some() {
            return Ok(());
        }
        let limiter = self.0.tenants.get_with(tenant, || Arc::new(Limiter::new(limits)));
        slot.limiter = Some(Arc::clone(&limiter));
        if let Some(rate) = &limiter.rate {
            slot.state = Some(limits.count(rate)?);
        }
        // The bodies of these methods have no meaning, and nobody waits for them.
        if matches!(parts.method, Method::GET | Method::HEAD | Method::DELETE) {
            slot.take_place()?;
        }
        Ok(())
    }

    fn policy(limits: TenantLimits) -> Option<HeaderValue> {
        let per_second = limits.per_second?;
        let window = limits.burst.get().div_ceil(per_second.get());
        let text = format!("\"{NAME}\";q={};w={window}", limits.burst);
        Some(HeaderValue::try_from(text).expect("names and numbers are ASCII"))
    }

    /// What every answer to a tenant says about its limits.
    pub(crate) fn headers(&self) -> LimitHeaders {
        LimitHeaders(Self::policy(self.0.limits))
    }
}

impl TenantLimits {
    fn count(self, rate: &Rate) -> Result<State, AuthError> {
        match rate.check() {
            Ok(snapshot) => {
                let remaining = snapshot.remaining_burst_capacity();
                let used = self.burst.get().saturating_sub(remaining);
                let per_second = self.per_second.map_or(1, NonZeroU32::get);
                let whole_in = Duration::from_secs(1) * used / per_second;
                Ok(State { remaining, whole_in })
            }
            Err(refused) => {
                metrics::counter!("tenantry_tenant_requests_refused_total", "limit" => "rate").increment(1);
                Err(AuthError::TooManyRequests {
                    retry_after: refused.wait_time_from(DefaultClock::default().now()),
                })
            }
        }
    }
}

impl Limiter {
    fn new(limits: TenantLimits) -> Self {
        let quota = |per_second| Quota::per_second(per_second).allow_burst(limits.burst);
        let places = |limit: NonZeroU32| Arc::new(Semaphore::new(limit.get() as usize));
        Self {
            rate: limits
                .per_second
                .map(|limit| RateLimiter::direct(quota(limit)).with_middleware()),
            places: limits.concurrent.map(places),
        }
    }
}

impl Slot {
    fn take_place(&mut self) -> Result<(), AuthError> {
        let Some(places) = self.limiter.as_ref().and_then(|limiter| limiter.places.as_ref()) else {
            return Ok(());
        };
        if self.place.is_none() {
            let place = Arc::clone(places).try_acquire_owned().map_err(|_| {
                metrics::counter!("tenantry_tenant_requests_refused_total", "limit" => "concurrency")
                    .increment(1);
                AuthError::TooManyRequests {
                    retry_after: TRY_AGAIN,
                }
            })?;
            self.place = Some(place);
        }
        Ok(())
    }
}

impl LimitSlot {
    /// The body of a request that was let in has arrived, and its handler begins to work. For whoever reads bodies.
    ///
    /// # Errors
    ///
    /// When the tenant has as many requests at work as it may.
    pub fn body_has_arrived(&self) -> Result<(), AuthError> {
        self.0.lock().take_place()
    }
}

/// What answers to tenants say about their limits.
#[derive(Clone, Debug)]
pub struct LimitHeaders(Option<HeaderValue>);

/// Keeps each request's place until its answer is made, and says in the answer what is left of the tenant's allowance.
#[derive(Clone, Debug)]
pub struct LimitLayer(LimitHeaders);

impl LimitLayer {
    /// A layer whose answers speak of these limits: [`AuthState::limit_headers`](crate::AuthState::limit_headers).
    pub fn new(headers: LimitHeaders) -> Self {
        Self(headers)
    }
}

impl<S> Layer<S> for LimitLayer {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited {
            inner,
            headers: self.0.clone(),
        }
    }
}

/// A service below a [`LimitLayer`].
#[derive(Clone, Debug)]
pub struct Limited<S> {
    inner: S,
    headers: LimitHeaders,
}

impl<S, B> Service<Request<B>> for Limited<S>
where
    S: Service<Request<B>, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = MadeWithin<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> MadeWithin<S::Future> {
        let slot = LimitSlot::default();
        request.extensions_mut().insert(slot.clone());
        MadeWithin {
            making: self.inner.call(request),
            slot,
            headers: self.headers.clone(),
        }
    }
}

pin_project! {
    /// An answer in the making, and the place that its request has until it is made.
    pub struct MadeWithin<F> {
        #[pin]
        making: F,
        slot: LimitSlot,
        headers: LimitHeaders,
    }
}

impl<F, E> Future for MadeWithin<F>
where
    F: Future<Output = Result<Response, E>>,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let made = ready!(this.making.poll(context));
        let (counted, state) = this.slot.leave();
        Poll::Ready(made.map(|mut response| {
            if counted {
                this.headers.say(&mut response, state);
            }
            response
        }))
    }
}

impl LimitSlot {
    /// Gives the place back. Answers whether the request was counted, and what is left.
    fn leave(&self) -> (bool, Option<State>) {
        let mut slot = self.0.lock();
        slot.place = None;
        (slot.limiter.is_some(), slot.state)
    }
}

impl LimitHeaders {
    fn say(&self, response: &mut Response, state: Option<State>) {
        let Some(policy) = &self.0 else { return };
        // Whoever was refused has nothing left.
        let State { remaining, whole_in } = state.unwrap_or(State {
            remaining: 0,
            whole_in: TRY_AGAIN,
        });
        let seconds = whole_in.as_millis().div_ceil(1000);
        let text = format!("\"{NAME}\";r={remaining};t={seconds}");
        let state = HeaderValue::try_from(text).expect("names and numbers are ASCII");
        response.headers_mut().insert(POLICY, policy.clone());
        response.headers_mut().insert(STATE, state);
    }
}

impl fmt::Debug for Limiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limiters").field(&self.0.limits).finish()
    }
}

impl fmt::Debug for LimitSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LimitSlot")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(per_second: u32, burst: u32, concurrent: u32) -> TenantLimits {
        TenantLimits {
            per_second: NonZeroU32::new(per_second),
            burst: NonZeroU32::new(burst).unwrap(),
            concurrent: NonZeroU32::new(concurrent),
        }
    }

    fn request(method: Method) -> (Parts, LimitSlot) {
        let (mut parts, ()) = Request::builder().method(method).body(()).unwrap().into_parts();
        let slot = LimitSlot::default();
        parts.extensions.insert(slot.clone());
        (parts, slot)
    }

    #[test]
    fn a_tenant_has_its_burst_and_the_others_have_theirs() {
        let limiters = Limiters::new(limits(1, 3, 0));
        let (noisy, quiet) = (TenantUuid::generate(), TenantUuid::generate());
        for _ in 0..3 {
            assert_eq!(limiters.enter(&request(Method::GET).0, noisy), Ok(()));
        }
        let refused = limiters.enter(&request(Method::GET).0, noisy);
        assert!(
            matches!(refused, Err(AuthError::TooManyRequests { .. })),
            "{refused:?}"
        );
        assert_eq!(limiters.enter(&request(Method::GET).0, quiet), Ok(()));
    }

    #[test]
    fn a_request_that_is_looked_at_twice_counts_once() {
        let limiters = Limiters::new(limits(1, 1, 1));
        let (parts, _slot) = request(Method::GET);
        let tenant = TenantUuid::generate();
        assert_eq!(limiters.enter(&parts, tenant), Ok(()));
        assert_eq!(limiters.enter(&parts, tenant), Ok(()));
    }

    #[test]
    fn a_place_is_taken_when_the_body_is_there_and_given_back_with_the_request() {
        let limiters = Limiters::new(limits(0, 1, 1));
        let tenant = TenantUuid::generate();
        let (slow, slow_slot) = request(Method::POST);
        assert_eq!(limiters.enter(&slow, tenant), Ok(()));
        let (quick, quick_slot) = request(Method::GET);
        assert_eq!(
            limiters.enter(&quick, tenant),
            Ok(()),
            "the slow one has no place yet"
        );
        assert!(slow_slot.body_has_arrived().is_err());
        drop((quick, quick_slot));
        assert_eq!(slow_slot.body_has_arrived(), Ok(()));
        assert_eq!(slow_slot.body_has_arrived(), Ok(()), "it has its place");
        assert!(limiters.enter(&request(Method::GET).0, tenant).is_err());
    }

    #[test]
    fn without_the_layer_nothing_is_let_in_that_should_be_counted() {
        let (mut parts, _) = request(Method::GET);
        parts.extensions.clear();
        let tenant = TenantUuid::generate();
        let entered = Limiters::new(limits(1, 1, 1)).enter(&parts, tenant);
        assert_eq!(entered, Err(AuthError::NoSession));
        assert_eq!(Limiters::new(TenantLimits::NONE).enter(&parts, tenant), Ok(()));
    }
}
