//! Query parameters: strict, so that a misspelt one is an error and not ignored.
//!
//! [`Query`] is for operations with parameters of their own, [`Paged`] for lists. Refuses to know what the parameters mean.

mod cursor;

use std::{fmt, str::FromStr};

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use utoipa::{IntoParams, ToSchema};

use super::problem::{Problem, ProblemKind};

/// Fewest and most items of a page.
const LIMITS: std::ops::RangeInclusive<u32> = 1..=200;
/// Items of a page when the request does not say.
const DEFAULT_LIMIT: u32 = 50;

/// An operation's query parameters. Parameter types say `#[serde(deny_unknown_fields)]`.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        typed(pairs(parts)).map(Self)
    }
}

/// A list's query parameters: which page, and a filter of the list's own. Filter types say `#[serde(deny_unknown_fields)]`.
///
/// In `#[utoipa::path]` they are documented by `params(PageParams, TheFilter)`.
#[derive(Clone, Debug)]
pub struct Paged<F = NoFilter> {
    /// Which page.
    pub page: Page,
    /// Which items.
    pub filter: F,
}

/// The filter of a list that has none.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFilter {}

/// Which page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Most items.
    pub limit: u32,
    cursor: Option<String>,
}

/// The parameters of every list, for the API's description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes what `Paged` reads by hand")]
pub struct PageParams {
    /// Most items of the page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A page of a list, in the order of its key.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Listing<T> {
    /// The items.
    pub items: Vec<T>,
    /// The `cursor` of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

impl Page {
    /// The key after which the page starts; `None` for the first page. `list` is the list's name, with everything on which the
    /// meaning of its keys depends: a cursor of another list is refused.
    pub fn after<K: FromStr>(&self, list: &str) -> Result<Option<K>, Problem> {
        let refused = || {
            Problem::new(
                ProblemKind::InvalidCursor,
                "the cursor is damaged or belongs to another list; start without one",
            )
        };
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let key = cursor::decode(list, cursor).ok_or_else(refused)?;
        key.parse().map(Some).map_err(|_| refused())
    }
}

impl<T> Listing<T> {
    /// A page; `last` is the key of its last item when there are more after it.
    pub fn new<K: fmt::Display>(list: &str, items: Vec<T>, last: Option<K>) -> Self {
        Self {
            items,
            next_cursor: last.map(|key| cursor::encode(list, &key.to_string())),
        }
    }
}

impl<F: DeserializeOwned, S: Sync> FromRequestParts<S> for Paged<F> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (of_page, of_filter): (Vec<_>, Vec<_>) = pairs(parts)
            .into_iter()
            .partition(|(name, _)| name == "limit" || name == "cursor");
        let PageQuery { limit, cursor } = typed(of_page)?;
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !LIMITS.contains(&limit) {
            let detail = format!("limit: a page has {} to {} items", LIMITS.start(), LIMITS.end());
            return Err(Problem::new(ProblemKind::InvalidQuery, detail));
        }
        Ok(Self {
            page: Page { limit, cursor },
            filter: typed(of_filter)?,
        })
    }
}

#[derive(Deserialize)]
struct PageQuery {
    limit: Option<u32>,
    cursor: Option<String>,
}

fn pairs(parts: &Parts) -> Vec<(String, String)> {
    let query = parts.uri.query().unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

fn typed<T: DeserializeOwned>(pairs: Vec<(String, String)>) -> Result<T, Problem> {
    // PostgreSQL's text cannot hold it, and nothing that is looked for has it.
    if let Some((name, _)) = pairs
        .iter()
        .find(|(name, value)| name.contains('\0') || value.contains('\0'))
    {
        return Err(invalid(&format!(
            "{}: has a NUL character",
            name.replace('\0', "␀")
        )));
    }
    let values = pairs.into_iter().map(|(name, value)| (name, Value(value)));
    let values = serde::de::value::MapDeserializer::<_, serde::de::value::Error>::new(values);
    serde_path_to_error::deserialize(values).map_err(|error| match error.path().to_string().as_str() {
        "." => invalid(&error.inner().to_string()),
        name => invalid(&format!("{name}: {}", error.inner())),
    })
}

fn invalid(detail: &str) -> Problem {
    Problem::new(
        ProblemKind::InvalidQuery,
        detail.chars().take(300).collect::<String>(),
    )
}

/// The text of a parameter, which becomes whatever the field's type is.
struct Value(String);

impl<'de> serde::de::IntoDeserializer<'de, serde::de::value::Error> for Value {
    type Deserializer = ValueDeserializer;

    fn into_deserializer(self) -> Self::Deserializer {
        ValueDeserializer(self.0)
    }
}

struct ValueDeserializer(String);

/// Numbers and booleans are parsed from the text.
macro_rules! parsed {
    ($($method:ident, $visit:ident, $type:ty, $what:literal;)+) => {$(
        fn $method<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            let value: $type =
                self.0.parse().map_err(|_| serde::de::Error::custom(concat!("must be ", $what)))?;
            visitor.$visit(value)
        }
    )+};
}

impl<'de> serde::Deserializer<'de> for ValueDeserializer {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(serde::de::IntoDeserializer::into_deserializer(self.0))
    }

    parsed! {
        deserialize_bool, visit_bool, bool, "true or false";
        deserialize_i16, visit_i16, i16, "a whole number";
        deserialize_i32, visit_i32, i32, "a whole number";
        deserialize_i64, visit_i64, i64, "a whole number";
        deserialize_u16, visit_u16, u16, "a whole number";
        deserialize_u32, visit_u32, u32, "a whole number";
        deserialize_u64, visit_u64, u64, "a whole number";
    }

    serde::forward_to_deserialize_any! {
        i8 i128 u8 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Filter {
        colour: Option<Colour>,
        text: Option<String>,
        exact: Option<bool>,
        from: Option<chrono::NaiveDate>,
    }

    async fn paged<F: DeserializeOwned>(query: &str) -> Result<Paged<F>, Problem> {
        let request = Request::builder().uri(format!("/list?{query}")).body(()).unwrap();
        Paged::from_request_parts(&mut request.into_parts().0, &()).await
    }

    #[tokio::test]
    async fn a_list_has_a_page_and_a_filter() {
        let all = paged::<Filter>("").await.unwrap();
        assert_eq!(
            (all.page.limit, all.page.after::<i64>("list").unwrap()),
            (50, None)
        );
        let some = paged::<Filter>("limit=200&colour=red&text=a%20b%26&exact=true&from=2026-11-30")
            .await
            .unwrap();
        assert_eq!(some.page.limit, 200);
        assert_eq!(
            (some.filter.colour, some.filter.text.as_deref()),
            (Some(Colour::Red), Some("a b&"))
        );
        assert_eq!(
            (some.filter.exact, some.filter.from),
            (Some(true), chrono::NaiveDate::from_ymd_opt(2026, 11, 30))
        );
    }

    #[tokio::test]
    async fn whatever_is_wrong_is_named() {
        for (query, part) in [
            ("limit=0", "limit"),
            ("limit=201", "limit"),
            ("limit=-1", "limit: must be a whole number"),
            ("limit=ten", "limit: must be a whole number"),
            ("limit=1&limit=2", "duplicate field `limit`"),
            ("limt=1", "unknown field `limt`"),
            ("colour=blue", "colour: unknown variant `blue`"),
            ("colour=red&colour=red", "duplicate field `colour`"),
            ("text=a%00b", "text: has a NUL"),
            ("exact=yes", "exact: must be true or false"),
        ] {
            let problem = paged::<Filter>(query).await.unwrap_err();
            assert_eq!(problem.kind(), ProblemKind::InvalidQuery, "{query}");
            assert!(problem.detail().contains(part), "{query}: {}", problem.detail());
        }
        assert!(paged::<NoFilter>("text=x").await.is_err());
    }

    #[tokio::test]
    async fn a_cursor_leads_on_in_its_own_list_only() {
        let listing = Listing::new("invoices", vec!["a"], Some(17_i64));
        let query = format!("cursor={}", listing.next_cursor.unwrap());
        let page = paged::<NoFilter>(&query).await.unwrap().page;
        assert_eq!(page.after::<i64>("invoices").unwrap(), Some(17));
        for problem in [
            page.after::<i64>("payments").unwrap_err(),
            page.after::<uuid::Uuid>("invoices").unwrap_err(),
        ] {
            assert_eq!(problem.kind(), ProblemKind::InvalidCursor);
        }
        assert_eq!(
            Listing::<u8>::new("invoices", vec![], None::<i64>).next_cursor,
            None
        );
    }
}
