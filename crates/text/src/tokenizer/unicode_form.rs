//! The normal forms of Unicode: from a crate, or in a browser from the browser, which already has the tables.

use std::borrow::Cow;

/// A normal form of Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// The names of the forms in metadata.
const NAMES: [(&str, Form); 4] =
    [("nfc", Form::Nfc), ("nfd", Form::Nfd), ("nfkc", Form::Nfkc), ("nfkd", Form::Nfkd)];

impl Form {
    /// The names of all forms, for messages.
    pub(super) const KNOWN: &str = "nfc, nfd, nfkc, nfkd";

    /// The form with this name.
    pub(super) fn named(name: &str) -> Option<Form> {
        NAMES.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The text in this form. ASCII is in all of them.
    pub(super) fn of(self, text: &str) -> Cow<'_, str> {
        if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(self.made(text)) }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn made(self, text: &str) -> String {
        use unicode_normalization::UnicodeNormalization;
        match self {
            Form::Nfc => text.nfc().collect(),
            Form::Nfd => text.nfd().collect(),
            Form::Nfkc => text.nfkc().collect(),
            Form::Nfkd => text.nfkd().collect(),
        }
    }

    #[cfg(target_arch = "wasm32")]
    fn made(self, text: &str) -> String {
        let name = NAMES.iter().find(|row| row.1 == self).map_or("", |row| row.0);
        js_sys::JsString::from(text).normalize(&name.to_ascii_uppercase()).into()
    }
}
