//! The filter `urlize`, which makes links of addresses.

use std::sync::Arc;

use super::args::{Args, as_bool, as_int, as_text, given};
use super::fault::{Result, fail};
use super::filters_text::escape_into;
use super::run::Run;
use super::split::{is_space, is_word};
use super::value::{Text, TextBuilder, Value};

/// Top level domains of addresses without a scheme.
const COMMON: [&str; 8] = ["com", "net", "int", "edu", "gov", "org", "info", "mil"];

/// Brackets that stay in an address if they are balanced.
const BRACKETS: [(&str, &str); 2] = [("(", ")"), ("&lt;", "&gt;")];

/// `urlize(trim_url_limit=none, nofollow=false, target=none, rel=none, extra_schemes=none)`.
pub(super) fn urlize(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let params = ["trim_url_limit", "nofollow", "target", "rel", "extra_schemes"];
    let [limit, nofollow, target, rel, schemes] = args.bind("urlize", params, 0)?;
    let limit = given(limit).map(|limit| as_int(Some(&limit), 0)).transpose()?;
    let attributes = attributes(run, as_bool(nofollow.as_ref(), false), given(target), given(rel))?;
    let schemes = given(schemes).map(|schemes| run.iterate(&schemes)).transpose()?;
    let schemes = schemes.iter().flat_map(|schemes| schemes.iter());
    let schemes: Vec<&str> = schemes.map(|scheme| as_text(Some(scheme), "")).collect::<Result<_>>()?;
    let _scratch = run.meter.charge(size_of_val(&*schemes))?;
    schemes.iter().try_for_each(|scheme| run.meter.read(scheme.len()))?;
    if let Some(scheme) = schemes.iter().find(|scheme| !is_scheme(scheme)) {
        return fail(format!("'{scheme}' is not a valid URI scheme prefix"));
    }
    let text = escaped(run, &value)?;
    let mut out = run.text()?;
    let mut rest: &str = &text;
    while !rest.is_empty() {
        let n_word = rest.find(is_space).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(n_word);
        rest = behind.trim_start_matches(is_space);
        let (head, tail) = ends(word);
        let address = &word[head..tail];
        run.meter.step(1 + (schemes.len() * (1 + word.len() / 32)) as u64)?;
        out.push_part(&text, &word[..head])?;
        match Kind::of(address, &schemes) {
            None => out.push_part(&text, address)?,
            Some(kind) => {
                out.push("<a href=\"")?;
                out.push(kind.prefix())?;
                out.push_part(&text, address)?;
                out.push("\"")?;
                if !kind.is_mail() {
                    out.push_text(&attributes)?;
                }
                out.push(">")?;
                kind.push_shown(&text, address, limit, &mut out)?;
                out.push("</a>")?;
            }
        }
        out.push_part(&text, &word[tail..])?;
        out.push_part(&text, &behind[..behind.len() - rest.len()])?;
    }
    Ok(out.finish())
}

fn escaped(run: &mut Run<'_>, value: &Value) -> Result<Arc<Text>> {
    let text = run.text_of(value)?;
    let mut out = run.text()?;
    escape_into(&text, &mut out)?;
    run.text_of(&out.finish())
}

/// The attributes `rel` and `target` of links.
fn attributes(
    run: &mut Run<'_>,
    nofollow: bool,
    target: Option<Value>,
    rel: Option<Value>,
) -> Result<Arc<Text>> {
    let rel = as_text(rel.as_ref(), "")?;
    let _scratch = run.meter.charge(8 * rel.len())?;
    let words = rel.split(is_space).filter(|word| !word.is_empty());
    let mut words: Vec<&str> = words.chain(["noopener"]).chain(nofollow.then_some("nofollow")).collect();
    words.sort_unstable();
    words.dedup();
    let mut joined = run.text()?;
    for (i, word) in words.into_iter().enumerate() {
        joined.push(if i > 0 { " " } else { "" })?;
        joined.push(word)?;
    }
    let mut out = run.text()?;
    out.push(" rel=\"")?;
    out.push_text(&*escaped(run, &joined.finish())?)?;
    out.push("\"")?;
    if let Some(target) = target.filter(Value::is_true) {
        out.push(" target=\"")?;
        out.push_text(&*escaped(run, &target)?)?;
        out.push("\"")?;
    }
    run.text_of(&out.finish())
}

/// Where the address in a word begins and ends, without brackets before it and punctuation behind it.
fn ends(word: &str) -> (usize, usize) {
    let mut address = word;
    while let Some(rest) = address.strip_prefix(['(', '<']).or_else(|| address.strip_prefix("&lt;")) {
        address = rest;
    }
    let head = word.len() - address.len();
    while let Some(rest) = address.strip_suffix([')', '>', '.', ',']).or_else(|| address.strip_suffix("&gt;"))
    {
        address = rest;
    }
    let mut tail = head + address.len();
    for (open, close) in BRACKETS {
        let address = &word[head..tail];
        let (n_open, n_close) = (address.matches(open).count(), address.matches(close).count());
        if n_open > n_close {
            let ends = word[tail..].match_indices(close).take(n_open);
            tail += ends.last().map_or(0, |(at, close)| at + close.len());
        }
    }
    (head, tail)
}

/// Kinds of addresses.
enum Kind {
    /// With a scheme.
    Whole,
    /// A site without a scheme.
    Site,
    /// `mailto:` and a mailbox.
    Mailto,
    /// A mailbox.
    Mailbox,
    /// With one of the caller's schemes.
    Extra,
}

impl Kind {
    fn of(address: &str, schemes: &[&str]) -> Option<Kind> {
        if is_site(address) {
            let is_whole = address.starts_with("https://") || address.starts_with("http://");
            return Some(if is_whole { Kind::Whole } else { Kind::Site });
        }
        if address.strip_prefix("mailto:").is_some_and(is_mailbox) {
            return Some(Kind::Mailto);
        }
        if !address.starts_with("www.")
            && !address.starts_with('@')
            && !address.contains(':')
            && is_mailbox(address)
        {
            return Some(Kind::Mailbox);
        }
        let is_extra = |scheme: &&str| address != *scheme && address.starts_with(*scheme);
        schemes.iter().any(is_extra).then_some(Kind::Extra)
    }

    /// The beginning of the link's target.
    fn prefix(&self) -> &'static str {
        match self {
            Kind::Whole | Kind::Mailto | Kind::Extra => "",
            Kind::Site => "https://",
            Kind::Mailbox => "mailto:",
        }
    }

    fn is_mail(&self) -> bool {
        matches!(self, Kind::Mailto | Kind::Mailbox)
    }

    /// Adds the link's text; of sites at most `limit` characters.
    fn push_shown(
        &self,
        text: &Text,
        address: &str,
        limit: Option<i128>,
        out: &mut TextBuilder,
    ) -> Result<()> {
        let Some(limit) = limit.filter(|_| matches!(self, Kind::Whole | Kind::Site)) else {
            return out.push_part(
                text,
                address.strip_prefix("mailto:").filter(|_| self.is_mail()).unwrap_or(address),
            );
        };
        let n_char = address.chars().count() as i128;
        if n_char <= limit {
            return out.push_part(text, address);
        }
        let n_shown = if limit < 0 { (n_char + limit).max(0) } else { limit };
        let end = address.char_indices().nth(n_shown as usize).map_or(address.len(), |(at, _)| at);
        out.push_part(text, &address[..end])?;
        out.push("...")
    }
}

/// True for an address of the web: with a scheme or `www.`, or in a common domain.
fn is_site(address: &str) -> bool {
    let after = |start: &str| {
        let (head, rest) = address.split_at_checked(start.len())?;
        head.eq_ignore_ascii_case(start).then_some(rest)
    };
    let behind_scheme = after("https://").or_else(|| after("http://"));
    if let Some(rest) = behind_scheme.and_then(|rest| rest.strip_prefix('[')) {
        return rest.split_once(']').is_some_and(|(host, path)| is_ipv6(host) && is_path(path));
    }
    let has_start = behind_scheme.or_else(|| after("www.")).is_some_and(|rest| {
        let (host, path) = host(rest);
        is_path(path) && (is_host(host) || behind_scheme.is_some() && is_ipv4(host))
    });
    let (host, path) = host(address);
    has_start || is_path(path) && is_common(host)
}

/// A host's name, and the rest.
fn host(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_label(c) && c != '.').unwrap_or(text.len()))
}

fn is_label(c: char) -> bool {
    is_word(c) || matches!(c, '%' | '-')
}

/// True if labels of any length precede a plausible top level domain.
fn is_host(host: &str) -> bool {
    let (labels, top) = host.rsplit_once('.').map_or((None, host), |(labels, top)| (Some(labels), top));
    let n = top.chars().count();
    let is_plain = (2..=63).contains(&n) && top.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_coded = (6..=63).contains(&n)
        && top.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
        && !top[4..].contains('-');
    (is_plain || is_coded) && labels.is_none_or(|labels| labels.split('.').all(|label| !label.is_empty()))
}

/// True for two labels or more in a common top level domain.
fn is_common(host: &str) -> bool {
    let Some((labels, top)) = host.rsplit_once('.') else { return false };
    COMMON.iter().any(|common| common.eq_ignore_ascii_case(top))
        && labels.split('.').all(|label| (2..=63).contains(&label.chars().count()))
}

fn is_ipv4(host: &str) -> bool {
    let is_part =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    host.split('.').count() == 4 && host.split('.').all(is_part)
}

/// True for two groups of up to four hexadecimal digits with their colons, and up to six more.
fn is_ipv6(host: &str) -> bool {
    let n_digit = |text: &str| text.bytes().take(4).take_while(u8::is_ascii_hexdigit).count();
    let mut rest = host;
    for group in 0..8 {
        rest = &rest[n_digit(rest)..];
        match rest.strip_prefix(':') {
            Some(behind) => rest = behind,
            None if group < 2 => return false,
            None => {}
        }
    }
    rest.is_empty()
}

/// True for an optional port, and an optional path, query or fragment.
fn is_path(text: &str) -> bool {
    let text = match text.strip_prefix(':') {
        None => text,
        Some(rest) => {
            let n = rest.bytes().take(6).take_while(u8::is_ascii_digit).count();
            if !(1..=5).contains(&n) {
                return false;
            }
            &rest[n..]
        }
    };
    text.is_empty() || text.starts_with(['/', '?', '#'])
}

fn is_mailbox(address: &str) -> bool {
    let Some((name, domain)) = address.rsplit_once('@') else { return false };
    let Some((labels, top)) = domain.rsplit_once('.') else { return false };
    !name.is_empty()
        && labels.starts_with(is_word)
        && labels.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
        && !top.is_empty()
        && top.chars().all(is_word)
}

/// True for a scheme with its colon and up to two slashes.
fn is_scheme(scheme: &str) -> bool {
    let Some((name, slashes)) = scheme.split_once(':') else { return false };
    name.chars().nth(1).is_some()
        && name.chars().all(|c| is_word(c) || matches!(c, '.' | '+' | '-'))
        && matches!(slashes, "" | "/" | "//")
}
