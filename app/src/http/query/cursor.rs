//! Cursors: the key of a page's last item in a form that nobody is tempted to take apart.
//!
//! A cursor grants nothing: whoever forges one starts reading somewhere else in a list that they may read anyway. The
//! checksum is there to tell a cut or foreign cursor from a good one.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Bytes of the checksum.
const CHECKSUM: usize = 4;
/// Longest cursor that is looked at.
const MAX_LENGTH: usize = 1024;

pub(super) fn encode(list: &str, key: &str) -> String {
    let mut bytes = crc32fast::hash(key.as_bytes())
        .wrapping_add(crc32fast::hash(list.as_bytes()))
        .to_be_bytes()
        .to_vec();
    bytes.extend_from_slice(key.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The key of a cursor of this list.
pub(super) fn decode(list: &str, cursor: &str) -> Option<String> {
    if cursor.len() > MAX_LENGTH {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (_, key) = bytes.split_at_checked(CHECKSUM)?;
    let key = std::str::from_utf8(key).ok()?;
    (encode(list, key) == cursor).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_leads_back_to_its_key(list in "[a-z /-]{1,40}", key in "\\PC{0,60}") {
            let cursor = encode(&list, &key);
            prop_assert_eq!(decode(&list, &cursor), Some(key));
            prop_assert_eq!(decode(&format!("{list}x"), &cursor), None);
            prop_assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')));
        }

        #[test]
        fn a_changed_cursor_is_refused(key in "[a-z0-9]{1,30}", index: usize, other in "[A-Za-z0-9_-]") {
            let cursor = encode("list", &key);
            let index = index % cursor.len();
            let mut changed = cursor.clone();
            changed.replace_range(index..=index, &other);
            prop_assume!(changed != cursor);
            prop_assert_eq!(decode("list", &changed), None);
            prop_assert_eq!(decode("list", &cursor[..index]), None);
        }

        #[test]
        fn nothing_makes_it_panic(text in ".{0,60}") {
            let _ = decode("list", &text);
        }
    }
}
