//! Grids of test cases: short notation for combinations of parameters, in the syntax of ggml's test program.
//!
//! An operation's folder may hold `grid.txt`. A line lists ggml's names of operations, a blank, and the parameters of
//! its cases. Alternatives in braces multiply out, also when nested; parentheses group several parameters into one
//! alternative; `#` begins a comment:
//!
//! ```text
//! {ABS,NEG} type={f16,f32},ne_a={[128,2,2,2],[5,7,11,13]},v={0,1}
//! FLASH_ATTN_EXT hsk=64,{(nr23=[1,1],kv={113,512}),(nr23=[4,1],kv=512)},nb={1,3}
//! ```
//!
//! The text of a case equals the text that ggml prints for it, so lists of cases can be compared.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ggml_format::GgmlType;

use crate::case::Case;
use crate::encode;
use crate::rng::Rng;

/// Builds the case of one combination.
type MakeCase = fn(&Params) -> Result<Case, GridError>;

/// Placeholder in builds without cases.
const NO_CASE: MakeCase = |p| Err(GridError::Left { op: p.op.clone() });

/// The cases of an operation that are written as a grid.
#[derive(Clone, Copy)]
pub struct Grid {
    /// The lines.
    pub text: &'static str,
    /// Builds the case of one combination.
    pub case: MakeCase,
    /// Builds a case with random shapes, strides and types.
    pub random: Option<fn(&mut Rng) -> Case>,
}

impl Grid {
    /// A grid whose cases are all supported.
    pub const fn new(text: &'static str, case: MakeCase) -> Self {
        let (text, case) = if cfg!(feature = "cases") { (text, case) } else { ("", NO_CASE) };
        Grid { text, case, random: None }
    }

    /// Adds random cases.
    #[must_use]
    pub const fn random(mut self, random: fn(&mut Rng) -> Case) -> Self {
        self.random = if cfg!(feature = "cases") { Some(random) } else { None };
        self
    }
}

/// The parameters of one case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Params {
    /// ggml's name of the operation.
    pub op: String,
    /// The text of the parameters, `key=value` and `key`, separated by commas.
    pub text: String,
}

/// Errors in a grid or one of its cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// Unbalanced braces.
    #[error("line {line}: `{text}` has an unbalanced brace")]
    Brace {
        /// Line of the grid, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A line without parameters.
    #[error("line {line}: expected names of operations and parameters, found `{text}`")]
    Line {
        /// Line of the grid, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A build without the cargo feature `cases`.
    #[error("{op}: this build has no test cases")]
    Left {
        /// The operation.
        op: String,
    },
    /// A missing parameter.
    #[error("{op}: no `{key}` in `{text}`")]
    Missing {
        /// The operation.
        op: String,
        /// The parameter.
        key: &'static str,
        /// All parameters.
        text: String,
    },
    /// A parameter with an invalid value.
    #[error("{op}: `{key}` is `{found}`, expected {expected}")]
    Value {
        /// The operation.
        op: String,
        /// The parameter.
        key: &'static str,
        /// Expected kind of value.
        expected: &'static str,
        /// Actual value.
        found: String,
    },
    /// A block format that no kernel reads.
    #[error("no kernel supports tensors of type {0}")]
    Format(&'static str),
}

/// All cases of a grid, in order.
///
/// # Errors
/// The first line that cannot be parsed.
pub fn expand(text: &str) -> Result<Vec<Params>, GridError> {
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let at = |text: &str| (n + 1, text.to_owned());
        let Some((ops, params)) = line.split_once(' ') else {
            let (line, text) = at(line);
            return Err(GridError::Line { line, text });
        };
        let brace = || {
            let (line, text) = at(line);
            GridError::Brace { line, text }
        };
        let params = alternatives(params.trim()).ok_or_else(brace)?;
        for op in alternatives(ops).ok_or_else(brace)? {
            out.extend(params.iter().map(|p| Params { op: op.clone(), text: p.clone() }));
        }
    }
    Ok(out)
}

/// Largest sample for each of ggml's operations.
const SAMPLE: usize = 50;
/// Cases with more values are in a sample only if no smaller one represents them.
const LARGE: u64 = 1 << 18;

/// A sample of the cases of each ggml operation, largest first, chosen and ordered by their text alone.
pub fn sample(all: Vec<Params>) -> Vec<Params> {
    let mut by_op: BTreeMap<String, Vec<Params>> = BTreeMap::new();
    all.into_iter().for_each(|p| by_op.entry(p.op.clone()).or_default().push(p));
    let rank = |p: &Params| {
        let mut h = DefaultHasher::new();
        p.text.hash(&mut h);
        h.finish()
    };
    by_op
        .into_values()
        .flat_map(|mut cases| {
            cases.sort_by_key(rank);
            let (mut large, small): (Vec<_>, Vec<_>) = cases.into_iter().partition(|p| p.size() > LARGE);
            large.sort_by_key(Params::size);
            large.into_iter().take(1).chain(small.into_iter().take(SAMPLE))
        })
        .collect()
}

/// Expands the braces of a text; `None` if they are unbalanced.
fn alternatives(text: &str) -> Option<Vec<String>> {
    // One alternative made of several parameters.
    let text = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text);
    let Some(open) = text.find('{') else {
        return (!text.contains('}')).then(|| vec![text.to_owned()]);
    };
    if text[..open].contains('}') {
        return None;
    }
    let (mut depth, mut bracket, mut from) = (0, 0, open + 1);
    let mut choices = Vec::new();
    let mut close = None;
    for (i, ch) in text.char_indices().skip_while(|(i, _)| *i < open) {
        match ch {
            '{' => depth += 1,
            '}' if depth == 1 => {
                choices.push(&text[from..i]);
                close = Some(i);
                break;
            }
            '}' => depth -= 1,
            '[' | '(' => bracket += 1,
            ']' | ')' => bracket -= 1,
            ',' if depth == 1 && bracket == 0 => {
                choices.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    let rest = alternatives(&text[close? + 1..])?;
    let mut out = Vec::new();
    for choice in choices {
        for inner in alternatives(choice)? {
            out.extend(rest.iter().map(|r| format!("{}{inner}{r}", &text[..open])));
        }
    }
    Some(out)
}

impl Params {
    /// `key=value` pairs, in order; a flag has no value.
    pub fn pairs(&self) -> Vec<(&str, Option<&str>)> {
        let (mut out, mut from, mut bracket) = (Vec::new(), 0, 0);
        for (i, ch) in self.text.char_indices().chain([(self.text.len(), ',')]) {
            match ch {
                '[' => bracket += 1,
                ']' => bracket -= 1,
                ',' if bracket == 0 => {
                    let part = &self.text[from..i];
                    out.push(part.split_once('=').map_or((part, None), |(k, v)| (k, Some(v))));
                    from = i + 1;
                }
                _ => {}
            }
        }
        out
    }

    /// Approximate number of values in the case: the largest product of a list, or of the plain numbers.
    pub fn size(&self) -> u64 {
        let product = |text: &str| -> u64 {
            text.trim_matches(['[', ']'])
                .split(',')
                .filter_map(|n| n.parse::<u64>().ok())
                .map(|n| n.max(1))
                .product()
        };
        let plain =
            "n m be1 be2 n_embd n_token head_dim n_head n_seq_tokens n_seqs head_count head_size nh kv nb ns";
        let plain: Vec<&str> = plain.split(' ').collect();
        let (mut lists, mut numbers) = (1, 1);
        for (key, value) in self.pairs() {
            match value {
                // How often the sizes repeat.
                Some(v) if key == "nr" => numbers *= product(v),
                Some(v) if v.starts_with('[') => lists = lists.max(product(v)),
                Some(v) if plain.contains(&key) => numbers *= product(v),
                _ => {}
            }
        }
        lists * numbers
    }

    /// Approximate size of the largest operand. Attention does not store its scores, and products have more values in
    /// their matrices than in their results.
    pub fn n_byte(&self) -> u64 {
        let of = |key| self.num::<u64>(key).ok();
        let pair = |key| self.list::<2>(key).map_or(1, |n| n.map(u64::from).iter().product::<u64>());
        let attention = || {
            let (d, keys, cols) = (of("hsk")?.max(of("hsv")?), of("kv")?, of("nb")?);
            let [per_kv, n_seq] = self.list::<2>("nr23").ok()?.map(u64::from);
            Some(4 * d * of("nh")? * keys.max(cols * per_kv * n_seq))
        };
        let product = || {
            let (m, n, ty) = (of("m")?, of("n")?, self.ty("type_a").ok()?);
            // Views are parts of longer rows, or of more rows.
            let (k, rows) = (of("k")?.max(of("k_v").unwrap_or(0)), m.max(of("m_v").unwrap_or(0)));
            let (n_a, n_b) =
                (of("n_mats").unwrap_or(1) * pair("bs"), of("n_used").unwrap_or(1) * pair("bs") * pair("nr"));
            let a = k * rows * n_a * ty.block_bytes() as u64 / ty.block_len() as u64;
            Some(a.max(4 * n * n_b * k.max(m)))
        };
        attention().or_else(product).unwrap_or_else(|| 4 * self.size())
    }

    /// Reason for skipping the case if the device does not read all of its types, or cannot write its destination type.
    pub fn left_out(&self) -> Option<&'static str> {
        let types = self.pairs().into_iter().filter(|(key, _)| key.starts_with("type"));
        let known = types.filter_map(|(key, v)| Some((key, GgmlType::from_name(v?)?)));
        let known: Vec<(&str, GgmlType)> = known.collect();
        let of = |key: &str| known.iter().find(|(k, _)| *k == key).map(|(_, t)| *t);
        if known.iter().any(|(_, t)| t.block_len() > 1 && crate::format::Format::of(*t).is_none()) {
            return Some("types that no kernel reads");
        }
        let to = of("type_dst").filter(|to| of("type_src") != Some(*to))?;
        (!encode::can_write(to)).then_some(encode::UNWRITTEN)
    }

    /// True if the key is present.
    pub fn has(&self, key: &str) -> bool {
        self.pairs().iter().any(|(k, _)| *k == key)
    }

    fn text_of(&self, key: &'static str) -> Result<&str, GridError> {
        let missing = || GridError::Missing { op: self.op.clone(), key, text: self.text.clone() };
        self.pairs().into_iter().find(|(k, _)| *k == key).and_then(|(_, v)| v).ok_or_else(missing)
    }

    /// Table row that the operation selects.
    ///
    /// # Errors
    /// [`GridError::Value`] if there is none
    pub fn row<T>(&self, found: Option<T>, expected: &'static str) -> Result<T, GridError> {
        found.ok_or_else(|| self.wrong("operation", expected, &self.op))
    }

    fn wrong(&self, key: &'static str, expected: &'static str, found: &str) -> GridError {
        GridError::Value { op: self.op.clone(), key, expected, found: found.into() }
    }

    /// A word.
    ///
    /// # Errors
    /// [`GridError::Missing`]
    pub fn word(&self, key: &'static str) -> Result<&str, GridError> {
        self.text_of(key)
    }

    /// A number.
    ///
    /// # Errors
    /// [`GridError::Missing`], [`GridError::Value`]
    pub fn num<T: std::str::FromStr>(&self, key: &'static str) -> Result<T, GridError> {
        let v = self.text_of(key)?;
        v.parse().map_err(|_| self.wrong(key, "a number", v))
    }

    /// 0 or 1.
    ///
    /// # Errors
    /// [`GridError::Missing`], [`GridError::Value`]
    pub fn flag(&self, key: &'static str) -> Result<bool, GridError> {
        match self.text_of(key)? {
            "0" => Ok(false),
            "1" => Ok(true),
            v => Err(self.wrong(key, "0 or 1", v)),
        }
    }

    /// `[a,b,...]` with `N` numbers.
    ///
    /// # Errors
    /// [`GridError::Missing`], [`GridError::Value`]
    pub fn list<const N: usize>(&self, key: &'static str) -> Result<[u32; N], GridError> {
        let v = self.text_of(key)?;
        let wrong = || self.wrong(key, "a list of numbers in brackets", v);
        let inner = v.strip_prefix('[').and_then(|v| v.strip_suffix(']')).ok_or_else(wrong)?;
        let parts: Result<Vec<u32>, _> = inner.split(',').map(str::parse).collect();
        parts.ok().and_then(|p| p.try_into().ok()).ok_or_else(wrong)
    }

    /// A tensor type that kernels read.
    ///
    /// # Errors
    /// [`GridError::Missing`], [`GridError::Value`], [`GridError::Format`] for block formats without a template
    pub fn ty(&self, key: &'static str) -> Result<GgmlType, GridError> {
        let v = self.text_of(key)?;
        let ty = GgmlType::from_name(v).ok_or_else(|| self.wrong(key, "a tensor type", v))?;
        if ty.block_len() > 1 && crate::format::Format::of(ty).is_none() {
            return Err(GridError::Format(ty.name()));
        }
        Ok(ty)
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.op, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::Caps;
    use crate::catalogue::OPS;

    fn texts(grid: &str) -> Vec<String> {
        expand(grid).expect("a grid").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn braces_multiply_out_and_lists_stay_whole() {
        assert_eq!(
            texts(
                "# all of them\n{ABS,NEG} type={f16,f32},ne=[1,2]\n\nGLU v={0,1},{swapped={0,1},split} # two forms"
            ),
            [
                "ABS type=f16,ne=[1,2]",
                "ABS type=f32,ne=[1,2]",
                "NEG type=f16,ne=[1,2]",
                "NEG type=f32,ne=[1,2]",
                "GLU v=0,swapped=0",
                "GLU v=0,swapped=1",
                "GLU v=0,split",
                "GLU v=1,swapped=0",
                "GLU v=1,swapped=1",
                "GLU v=1,split",
            ]
        );
        assert_eq!(texts("X ne={[1,2],[3,4]}"), ["X ne=[1,2]", "X ne=[3,4]"]);
        assert_eq!(
            texts("X {(a=[1,2],b={3,4}),(a=5,{(b=6,c),d})},e"),
            ["X a=[1,2],b=3,e", "X a=[1,2],b=4,e", "X a=5,b=6,c,e", "X a=5,d,e"]
        );
    }

    #[test]
    fn errors_name_the_line() {
        for (grid, want) in [
            ("A x=1\nB x={1,2", "line 2: `B x={1,2` has an unbalanced brace"),
            ("A x=1}", "line 1: `A x=1}` has an unbalanced brace"),
            ("\n\nlonely", "line 3: expected names of operations and parameters, found `lonely`"),
        ] {
            assert_eq!(expand(grid).expect_err("a broken grid").to_string(), want);
        }
    }

    #[test]
    fn the_largest_operand_decides_about_bytes() {
        for (text, n_byte) in [
            ("ne=[8,4,1,1],type=f32", 128),
            ("hsk=64,hsv=32,nh=4,nr23=[2,1],kv=100,nb=3", 4 * 64 * 4 * 100),
            ("type_a=f32,type_b=f32,m=64,n=1,k=32,bs=[2,1],nr=[1,1],k_v=0,m_v=0", 4 * 64 * 32 * 2),
            ("type_a=q8_0,type_b=f32,m=64,n=1,k=32,bs=[1,1],nr=[1,1],k_v=64,m_v=0", 64 * 68),
            ("type_a=f16,type_b=f32,m=8,n=100,k=32,bs=[1,1],nr=[3,1],k_v=0,m_v=0", 4 * 100 * 32 * 3),
            ("type_a=f16,type_b=f32,n_mats=8,n_used=2,m=64,n=1,k=32,m_v=0", 2 * 64 * 32 * 8),
        ] {
            let p = Params { op: "X".into(), text: text.into() };
            assert_eq!(p.n_byte(), n_byte, "{text}");
        }
    }

    #[test]
    fn values_are_checked() {
        let p = Params { op: "CPY".into(), text: "type=q9,ne=[1,2,x,4],v=2,split".into() };
        assert_eq!(
            p.ty("type").expect_err("a type").to_string(),
            "CPY: `type` is `q9`, expected a tensor type"
        );
        assert_eq!(
            p.list::<4>("ne").expect_err("a list").to_string(),
            "CPY: `ne` is `[1,2,x,4]`, expected a list of numbers in brackets"
        );
        assert_eq!(p.flag("v").expect_err("a flag").to_string(), "CPY: `v` is `2`, expected 0 or 1");
        assert!(p.has("split") && p.flag("split").is_err() && p.num::<u32>("n").is_err());
    }

    #[test]
    fn every_grid_can_be_read_and_its_cases_made() {
        // Larger cases are left to the device tests.
        const SMALL: u64 = 1 << 8;
        for op in OPS {
            let Some(grid) = op.grid else { continue };
            let all = expand(grid.text).unwrap_or_else(|e| panic!("{}: {e}", op.name));
            for p in &all {
                assert!(op.ggml.contains(&p.op.as_str()), "{}: `ggml` does not name {}", op.name, p.op);
                if p.left_out().is_none() && p.size() <= SMALL {
                    let case = (grid.case)(p).unwrap_or_else(|e| panic!("{p}: {e}"));
                    (case.steps)(&Caps::base()).unwrap_or_else(|e| panic!("{p}: {e}"));
                }
            }
            for name in op.ggml {
                assert!(all.iter().any(|p| p.op == *name), "{}: no case of {name} in its grid", op.name);
            }
        }
    }
}
