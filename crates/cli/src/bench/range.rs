//! Lists of numbers: `512`, `1,2,4`, `1-4`, `128-512+128`, `1-64*2`, or several of these separated by commas.

/// Values of an option, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List(pub(super) Vec<u32>);

/// Maximum number of values in a range.
const LIMIT: usize = 4096;

pub(super) fn list(text: &str) -> Result<List, String> {
    let mut values = Vec::new();
    for item in text.split(',') {
        range(item.trim(), &mut values)?;
    }
    Ok(List(values))
}

/// Numbers of threads. As in other commands, -1 is 0.
pub(super) fn threads(text: &str) -> Result<List, String> {
    if text.trim() == "-1" { Ok(List(vec![0])) } else { list(text) }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number from 0 to {}", u32::MAX))
}

fn range(text: &str, out: &mut Vec<u32>) -> Result<(), String> {
    let Some((first, rest)) = text.split_once('-') else {
        out.push(number(text)?);
        return Ok(());
    };
    let (last, step, factor) = match (rest.split_once('+'), rest.split_once('*')) {
        (Some((last, step)), None) => (last, number(step)?, 1),
        (None, Some((last, factor))) => (last, 0, number(factor)?),
        (None, None) => (rest, 1, 1),
        _ => return Err(format!("`{text}`: expected FIRST-LAST, FIRST-LAST+STEP or FIRST-LAST*FACTOR")),
    };
    let (first, last) = (number(first)?, number(last)?);
    let next = |v: u32| v.checked_mul(factor).and_then(|v| v.checked_add(step));
    if next(first).is_some_and(|v| v <= first) {
        return Err(format!("`{text}` never ends"));
    }
    if first > last {
        return Err(format!("`{text}`: the first value exceeds the last"));
    }
    let (n, mut value) = (out.len(), Some(first));
    while let Some(v) = value.filter(|v| *v <= last) {
        if out.len() - n == LIMIT {
            return Err(format!("`{text}` has more than {LIMIT} values"));
        }
        out.push(v);
        value = next(v);
    }
    Ok(())
}

/// Prompt tokens and generated tokens: `P,N`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair(pub(super) u32, pub(super) u32);

pub(super) fn pair(text: &str) -> Result<Pair, String> {
    let (p, n) = text.split_once(',').ok_or("expected two comma-separated numbers, P,N")?;
    Ok(Pair(number(p.trim())?, number(n.trim())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let values = |text: &str| list(text).unwrap().0;
        assert_eq!(threads("-1").unwrap().0, [0]);
        assert_eq!(threads("1,4").unwrap().0, [1, 4]);
        assert_eq!(values("512"), [512]);
        assert_eq!(values("0,512, 7"), [0, 512, 7]);
        assert_eq!(values("2-5"), [2, 3, 4, 5]);
        assert_eq!(values("0-1024+512"), [0, 512, 1024]);
        assert_eq!(values("1-70*2"), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(values("4,8-10"), [4, 8, 9, 10]);
        assert_eq!(values("3-3"), [3]);
        assert_eq!(values("4294967294-4294967295"), [u32::MAX - 1, u32::MAX]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "a", "1,", "-1", "5-2", "1-5+0", "1-5*1", "0-8*2", "0-99999", "1-2+3*4", "1-2-3"] {
            assert!(list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs() {
        assert_eq!(pair("512, 128"), Ok(Pair(512, 128)));
        assert!(pair("512").is_err());
        assert!(pair("512,-1").is_err());
    }
}
