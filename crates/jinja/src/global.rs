//! Names of the functions that every template has.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Global {
    Range,
    Dict,
    Namespace,
    Cycler,
    Joiner,
    RaiseException,
    StrftimeNow,
    Lipsum,
}

const GLOBALS: [(&str, Global); 8] = [
    ("range", Global::Range),
    ("dict", Global::Dict),
    ("namespace", Global::Namespace),
    ("cycler", Global::Cycler),
    ("joiner", Global::Joiner),
    ("raise_exception", Global::RaiseException),
    ("strftime_now", Global::StrftimeNow),
    ("lipsum", Global::Lipsum),
];

impl Global {
    /// The function of this name; without a time there is no `strftime_now`.
    pub(super) fn find(name: &str, has_time: bool) -> Option<Global> {
        let (_, global) = GLOBALS.iter().find(|(found, _)| *found == name)?;
        (*global != Global::StrftimeNow || has_time).then_some(*global)
    }
}
