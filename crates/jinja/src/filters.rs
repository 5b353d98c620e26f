//! Jinja's filters by name.

use super::args::Args;
use super::fault::{Result, fail};
use super::run::Run;
use super::value::Value;
use super::{
    filters_choose as choose, filters_items as items, filters_number as number, filters_text as text, json,
};

pub(super) type Filter = fn(&mut Run<'_>, Value, Args) -> Result<Value>;

pub(super) const FILTERS: &[(&str, Filter)] = &[
    ("abs", number::abs),
    ("attr", items::attr),
    #[cfg(feature = "rare-filters")]
    ("batch", items::batch),
    ("capitalize", text::capitalize),
    #[cfg(feature = "rare-filters")]
    ("center", text::center),
    ("count", items::length),
    ("d", items::default),
    ("default", items::default),
    ("dictsort", items::dictsort),
    ("e", text::escape),
    ("escape", text::escape),
    #[cfg(feature = "rare-filters")]
    ("filesizeformat", super::filters_pages::filesizeformat),
    ("first", items::first),
    ("float", number::float),
    ("forceescape", text::escape),
    ("format", text::format),
    #[cfg(feature = "rare-filters")]
    ("groupby", items::groupby),
    ("indent", text::indent),
    ("int", number::int),
    ("items", items::items),
    ("join", items::join),
    ("last", items::last),
    ("length", items::length),
    ("list", items::list),
    ("lower", text::lower),
    ("map", choose::map),
    ("max", items::max),
    ("min", items::min),
    #[cfg(feature = "rare-filters")]
    ("pprint", text::pprint),
    #[cfg(feature = "rare-filters")]
    ("random", items::random),
    ("reject", choose::reject),
    ("rejectattr", choose::rejectattr),
    ("replace", text::replace),
    ("reverse", items::reverse),
    ("round", number::round),
    // Nothing is escaped here, so all text is safe.
    ("safe", text::string),
    ("select", choose::select),
    ("selectattr", choose::selectattr),
    #[cfg(feature = "rare-filters")]
    ("slice", items::slice),
    ("sort", items::sort),
    ("string", text::string),
    #[cfg(feature = "rare-filters")]
    ("striptags", super::filters_pages::striptags),
    ("sum", items::sum),
    ("title", text::title),
    ("tojson", json::tojson),
    ("trim", text::trim),
    #[cfg(feature = "rare-filters")]
    ("truncate", text::truncate),
    ("unique", items::unique),
    ("upper", text::upper),
    #[cfg(feature = "rare-filters")]
    ("urlencode", super::filters_pages::urlencode),
    #[cfg(feature = "rare-filters")]
    ("urlize", super::filters_links::urlize),
    #[cfg(feature = "rare-filters")]
    ("wordcount", text::wordcount),
    #[cfg(feature = "rare-filters")]
    ("wordwrap", super::filters_wrap::wordwrap),
    #[cfg(feature = "rare-filters")]
    ("xmlattr", super::filters_pages::xmlattr),
];

pub(super) fn find(name: &str) -> Option<Filter> {
    FILTERS.iter().find(|(found, _)| *found == name).map(|(_, filter)| *filter)
}

impl Run<'_> {
    /// Applies the filter of this name.
    pub(super) fn apply(&mut self, name: &str, value: Value, args: Args) -> Result<Value> {
        value.read(&self.meter)?;
        args.read(&self.meter)?;
        if let Some((_, filter)) = self.env.filters.iter().find(|(found, _)| *found == name) {
            return self.call_custom(*filter, Some(value), args);
        }
        if !matches!(name, "default" | "d") {
            self.check(&value)?;
        }
        match find(name) {
            Some(filter) => filter(self, value, args),
            None => fail(format!("no filter named '{}'", name.chars().take(40).collect::<String>())),
        }
    }
}
