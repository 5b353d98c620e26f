//! Traces across programs: W3C's header `traceparent`.

use axum::http::{HeaderMap, HeaderName};

use crate::hex;

/// The header.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A trace, and the place of a request in it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) id: [u8; 16],
    /// The client's span; none where the trace begins here.
    pub(crate) parent: Option<[u8; 8]>,
    /// The span of the request.
    pub(crate) span: [u8; 8],
    /// False where the client keeps no spans of it.
    pub(crate) is_sampled: bool,
}

/// Bytes in lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    hex::bytes(text).filter(|_| !text.bytes().any(|byte| byte.is_ascii_uppercase()))
}

/// Random bytes, not all 0.
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| *bytes != [0; N])
}

impl Trace {
    /// The trace of a request's headers. One that is not valid is none, as the specification has it.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Trace> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (value, None) = (values.next()?.to_str().ok()?, values.next()) else { return None };
        let mut parts = value.trim().split('-');
        let version: [u8; 1] = bytes(parts.next()?)?;
        let id = bytes(parts.next()?).filter(|id| *id != [0; 16])?;
        let parent = bytes(parts.next()?).filter(|id| *id != [0; 8])?;
        let flags: [u8; 1] = bytes(parts.next()?)?;
        // Later versions may have more.
        if version[0] == 0xff || (version[0] == 0 && parts.next().is_some()) {
            return None;
        }
        Some(Trace { id, parent: Some(parent), span: random()?, is_sampled: flags[0] & 1 == 1 })
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        hex::text(&self.id)
    }

    /// The header for those who go on from here.
    pub(crate) fn header(&self) -> String {
        format!("00-{}-{}-0{}", self.name(), hex::text(&self.span), u8::from(self.is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Option<Trace> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, value.parse().unwrap());
        }
        Trace::of(&headers)
    }

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_trace_goes_on_with_a_span_of_its_own() {
        let trace = of(&[&format!("00-{ID}-00f067aa0ba902b7-01")]).unwrap();
        assert_eq!(
            (trace.name().as_str(), trace.parent.map(|id| hex::text(&id)).as_deref()),
            (ID, Some("00f067aa0ba902b7"))
        );
        let next = of(&[&trace.header()]).unwrap();
        assert_eq!((next.id, next.parent, next.is_sampled), (trace.id, Some(trace.span), true));
        assert_ne!(next.span, trace.span);
        let quiet = of(&[&format!("00-{ID}-00f067aa0ba902b7-02")]).unwrap();
        assert!(!quiet.is_sampled && quiet.header().ends_with("-00"));
        // A later version.
        assert!(of(&[&format!("cc-{ID}-00f067aa0ba902b7-01-more")]).is_some());
    }

    #[test]
    fn headers_that_are_not_valid_are_none() {
        for wrong in [
            "",
            "00",
            &format!("00-{ID}-00f067aa0ba902b7"),
            &format!("00-{ID}-00f067aa0ba902b7-01-more"),
            &format!("ff-{ID}-00f067aa0ba902b7-01"),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{ID}-0000000000000000-01"),
            &format!("00-{}-00f067aa0ba902b7-01", ID.to_uppercase()),
            &format!("00-{ID}-00f067aa0ba902b7-1"),
            &format!("00-{ID}-00f067aa0ba902b7-0é"),
        ] {
            assert_eq!(of(&[wrong]), None, "{wrong}");
        }
        let right = format!("00-{ID}-00f067aa0ba902b7-01");
        assert_eq!(of(&[&right, &right]), None);
    }
}
