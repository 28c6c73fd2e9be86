//! The Tower layer that carries positions between a client's requests: in a cookie for browsers, in a header for everyone
//! else.
//!
//! It gives each request a [`Session`] among its extensions. What the session has come to when the response's headers go out
//! is what the client takes along; what is committed after that cannot be carried any more, so writes happen before a
//! response starts.

use std::{
    collections::hash_map::RandomState,
    future::Future,
    hash::{BuildHasher, Hasher},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response,
    header::{AUTHORIZATION, COOKIE, SET_COOKIE, USER_AGENT},
};
use tower::{Layer, Service};

use crate::{
    Positions, ServedBy, Session, Summary,
    metrics::position as count,
    recollection::{CallerId, Recollection},
    token::{SessionId, TokenKeys},
};

/// How positions travel.
#[derive(Clone, Debug)]
pub struct PositionSettings {
    /// Keys that tokens are signed with.
    pub keys: TokenKeys,
    /// Name of the cookie.
    pub cookie: &'static str,
    /// Name of the header, of requests and responses.
    pub header: HeaderName,
    /// Name of the response header that says who has served.
    pub served_by: HeaderName,
    /// Name of the response header that says how old a replica's data can be at most, in milliseconds.
    pub staleness: HeaderName,
    /// Whether the cookie is sent over HTTPS only. Off is for development.
    pub secure: bool,
    /// How long a position counts.
    pub life: Duration,
}

impl PositionSettings {
    /// The names of this project, for a service behind HTTPS, and ten minutes of life.
    pub fn new(keys: TokenKeys) -> Self {
        Self {
            keys,
            cookie: "tenantry_position",
            header: HeaderName::from_static("tenantry-position"),
            served_by: HeaderName::from_static("tenantry-served-by"),
            staleness: HeaderName::from_static("tenantry-staleness-ms"),
            secure: true,
            life: Duration::from_secs(600),
        }
    }
}

/// Carries positions. One is made for a service and shared by all its requests.
#[derive(Clone, Debug)]
pub struct PositionLayer {
    carrier: Arc<Carrier>,
}

impl PositionLayer {
    /// Carries positions as the settings say.
    pub fn new(settings: PositionSettings) -> Self {
        let carrier = Carrier {
            settings,
            recollection: Recollection::default(),
            hashing: RandomState::new(),
        };
        Self {
            carrier: Arc::new(carrier),
        }
    }
}

impl<S> Layer<S> for PositionLayer {
    type Service = PositionService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PositionService {
            inner,
            carrier: Arc::clone(&self.carrier),
        }
    }
}

/// A service whose requests have a [`Session`].
#[derive(Clone, Debug)]
pub struct PositionService<S> {
    inner: S,
    carrier: Arc<Carrier>,
}

impl<S, B, R> Service<Request<B>> for PositionService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Carried<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let visit = self.carrier.receive(request.headers());
        request.extensions_mut().insert(visit.session.clone());
        Carried {
            response: self.inner.call(request),
            carrier: Arc::clone(&self.carrier),
            visit,
        }
    }
}

pin_project_lite::pin_project! {
    /// The future of a [`PositionService`].
    #[derive(Debug)]
    pub struct Carried<F> {
        #[pin]
        response: F,
        carrier: Arc<Carrier>,
        visit: Visit,
    }
}

impl<F, R, E> Future for Carried<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut answer = ready!(this.response.poll(cx));
        if let Ok(response) = &mut answer {
            this.carrier.send(this.visit, response.headers_mut());
        }
        Poll::Ready(answer)
    }
}

/// One request that is being answered.
#[derive(Debug)]
struct Visit {
    session: Session,
    id: SessionId,
    caller: CallerId,
    began: Instant,
    /// Whether it came with a token at all.
    had_token: bool,
    /// What was in the cookie.
    in_cookie: Option<Positions>,
}

#[derive(Debug)]
struct Carrier {
    settings: PositionSettings,
    recollection: Recollection,
    hashing: RandomState,
}

impl Carrier {
    fn receive(&self, headers: &HeaderMap) -> Visit {
        let began = Instant::now();
        let caller = self.caller(headers);
        let cookie = cookies(headers, self.settings.cookie).find_map(|token| self.read(token));
        let header = headers.get_all(&self.settings.header).iter();
        let header = header
            .filter_map(|value| match value.to_str() {
                Ok(token) if !token.is_empty() => self.read(token),
                _ => None,
            })
            .reduce(|(id, mut positions), (_, more)| {
                positions.merge(&more);
                (id, positions)
            });
        let had_token = cookie.is_some() || header.is_some();
        let id = cookie.as_ref().or(header.as_ref()).map(|(id, _)| *id);
        let in_cookie = cookie.map(|(_, positions)| positions);
        let recalled = match id {
            Some(id) => self.recollection.of(id),
            None => self.recollection.of_caller(caller, began),
        };
        let mut knows = recalled.unwrap_or_default();
        if let Some(positions) = &in_cookie {
            knows.merge(positions);
        }
        if let Some((other, positions)) = &header {
            knows.merge(positions);
            knows.merge(&self.recollection.of(*other).unwrap_or_default());
        }
        Visit {
            session: Session::new(knows),
            id: id.unwrap_or_else(SessionId::generate),
            caller,
            began,
            had_token,
            in_cookie,
        }
    }

    /// The positions of a token that counts. One that does not is ignored and counted.
    fn read(&self, token: &str) -> Option<(SessionId, Positions)> {
        match self.settings.keys.read(token) {
            Ok((id, mut positions)) => {
                let life = self.settings.life;
                let ended = positions
                    .retain(|position| position.age() <= life && !position.is_ahead_by_more_than(life));
                for _ in 0..ended {
                    count("expired");
                }
                count("accepted");
                Some((id, positions))
            }
            Err(fault) => {
                count(fault.as_str());
                None
            }
        }
    }

    fn send(&self, visit: &Visit, headers: &mut HeaderMap) {
        let Summary {
            mut positions,
            served,
            staleness,
            withdrawn,
            ..
        } = visit.session.finish();
        if !positions.is_empty() {
            if visit.had_token {
                self.recollection.answer(visit.id, &mut positions, &withdrawn);
            } else {
                self.recollection
                    .born(visit.caller, visit.id, visit.began, &mut positions);
            }
        } else if visit.had_token
            && let Err(more) = self.recollection.lose(visit.caller, visit.id, &withdrawn)
        {
            positions = more;
        }
        if !positions.is_empty() {
            let token = self.settings.keys.write(visit.id, &positions);
            let token = HeaderValue::try_from(token).expect("a token is ASCII");
            if visit.in_cookie.as_ref() != Some(&positions) {
                headers.append(SET_COOKIE, self.cookie(&token, self.settings.life));
            }
            headers.insert(&self.settings.header, token);
        } else if visit.in_cookie.is_some() {
            headers.append(
                SET_COOKIE,
                self.cookie(&HeaderValue::from_static(""), Duration::ZERO),
            );
        }
        if !served.is_empty() {
            let names: Vec<_> = served.iter().map(ServedBy::as_str).collect();
            if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
                headers.insert(&self.settings.served_by, names);
            }
        }
        if let Some(staleness) = staleness {
            let milliseconds = u64::try_from(staleness.as_millis()).unwrap_or(u64::MAX);
            headers.insert(&self.settings.staleness, milliseconds.into());
        }
    }

    fn cookie(&self, token: &HeaderValue, life: Duration) -> HeaderValue {
        let token = token.to_str().expect("a token is ASCII");
        let secure = if self.settings.secure { "; Secure" } else { "" };
        let text = format!(
            "{}={token}; Max-Age={}; Path=/; HttpOnly; SameSite=Lax{secure}",
            self.settings.cookie,
            life.as_secs()
        );
        HeaderValue::try_from(text).expect("name and token are ASCII")
    }

    /// Who sends this request, as far as that shows: by credential (never kept, only hashed with a key of this process), user
    /// agent, and the address that a proxy has written down.
    fn caller(&self, headers: &HeaderMap) -> CallerId {
        let mut hasher = self.hashing.build_hasher();
        for name in [
            AUTHORIZATION,
            USER_AGENT,
            HeaderName::from_static("x-forwarded-for"),
        ] {
            for value in headers.get_all(name) {
                hasher.write(value.as_bytes());
            }
            hasher.write_u8(0xff);
        }
        for cookie in headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
        {
            let others = pairs(cookie).filter(|(name, _)| *name != self.settings.cookie);
            for (name, value) in others {
                hasher.write(name.as_bytes());
                hasher.write(value.as_bytes());
            }
        }
        CallerId(hasher.finish())
    }
}

/// The values of all cookies of a name.
fn cookies<'h>(headers: &'h HeaderMap, wanted: &'h str) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(COOKIE).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(pairs)
        .filter_map(move |(name, value)| (name == wanted).then_some(value))
}

/// The names and values in a `Cookie` header (RFC 6265, section 4.2.1).
fn pairs(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim(), value.trim().trim_matches('"')))
    })
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
