//! WGSL identifiers and reserved words.

#[cfg(feature = "jinja")]
/// The keywords and reserved words of WGSL (W3C, sections 15.1 and 15.2), by first letter.
const RESERVED: &str = "
    NULL Self
    abstract active alias alignas alignof as asm asm_fragment async attribute auto await
    become break
    case cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment
    concept const const_assert const_cast consteval constexpr constinit continue continuing crate
    debugger decltype default delete demote demote_to_helper diagnostic discard do dynamic_cast
    else enable enum explicit export extends extern external
    fallthrough false filter final finally fn for friend from fxgroup
    get goto groupshared
    highp
    if impl implements import inline instanceof interface
    layout let loop lowp
    macro macro_rules match mediump meta mod module move mut mutable
    namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr
    of operator override
    package packoffset partition pass patch pixelfragment precise precision premerge priv protected pub public
    readonly ref regardless register reinterpret_cast require requires resource restrict return
    self set shared sizeof smooth snorm static static_assert static_cast std struct subroutine super switch
    target template this thread_local throw trait true try type typedef typeid typename typeof
    union unless unorm unsafe unsized use using
    var varying virtual volatile
    wgsl where while with writeonly
    yield
";

#[cfg(feature = "jinja")]
/// True if WGSL reserves `word`.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.split_ascii_whitespace().any(|reserved| reserved == word)
}

/// True if an identifier can begin with `c`.
pub(crate) fn is_ident_start(c: char) -> bool {
    c == '_' || unicode_ident::is_xid_start(c)
}

/// True if an identifier can continue with `c`.
pub(crate) fn is_ident_continue(c: char) -> bool {
    unicode_ident::is_xid_continue(c)
}

/// True if `text` has the form of an identifier.
pub(crate) fn is_ident_pattern(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_ident_start) && chars.all(is_ident_continue)
}

#[cfg(feature = "jinja")]
/// The reason why `text` is not a valid WGSL name, or `None` if it is one.
pub(crate) fn ident_problem(text: &str) -> Option<&'static str> {
    if !is_ident_pattern(text) {
        Some("which is malformed")
    } else if text == "_" {
        Some("which cannot be used as a name")
    } else if text.starts_with("__") {
        Some("which begins with two underscores")
    } else if is_reserved(text) {
        Some("which is reserved")
    } else {
        None
    }
}

#[cfg(all(test, feature = "jinja"))]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_naga_reserves_is_reserved() {
        for word in naga::keywords::wgsl::RESERVED {
            assert!(is_reserved(word), "{word}");
        }
        assert_eq!(RESERVED.split_ascii_whitespace().count(), naga::keywords::wgsl::RESERVED.len());
    }

    #[test]
    fn identifiers_are_those_of_wgsl() {
        for good in ["a", "_a", "a_1", "A", "f32", "Δέλτα", "réflexion", "クラウド"] {
            assert_eq!(ident_problem(good), None, "{good}");
        }
        for bad in ["", "1a", "a-b", "a b", "_", "__a", "while", "self", "a.b"] {
            assert!(ident_problem(bad).is_some(), "{bad}");
        }
    }
}
