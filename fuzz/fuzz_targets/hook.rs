//! A panic hook for targets whose grammars llguidance compiles: it catches its own panics and returns them as errors,
//! which `docs/reliability.md` lists. All others end the process, so that the fuzzer keeps the input.

/// Where panics are caught: in llguidance and its regular expressions.
const CAUGHT: [&str; 3] = ["/llguidance-", "/derivre-", "/toktrie-"];

/// Installs the hook, after the fuzzer's own.
pub(crate) fn install() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |place| place.file());
        if !CAUGHT.iter().any(|name| file.contains(name)) {
            abort(info);
        }
    }));
}
