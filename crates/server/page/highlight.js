// Colours for code, line by line: what a line is depends on the lines before it only by one state, so code that grows is
// read once. Each expression is anchored where it is tried and free of nested repeats, so that no code takes long.

const C_LIKE = { line: ["//"], block: [["/*", "*/"]], strings: ['"', "'"] };
const words = (text) => new Set(text.split(" "));

const JS = words("async await break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of private protected public readonly return set static super switch this throw true try type typeof undefined var void while with yield");
const C = words("alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr operator override private protected public return short signed sizeof static struct super switch template this throw true try typedef typename union unsigned using virtual void volatile while");
const JAVA = words("abstract assert boolean break byte case catch char class const continue data default do double else enum extends false final finally float for fun if implements import in instanceof int interface internal is long new null object open override package private protected public record return sealed short static string super switch synchronized this throw throws transient true try val var void volatile when while yield async await namespace using get set base decimal");
const SQL = words("add all alter and as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references right rollback select set table then true union unique update values view when where with");
const SHELL = words("case do done elif else esac export fi for function if in local read return select set shift source then until while echo cd exit sudo");

const LANGUAGES = {
  js: { ...C_LIKE, strings: ['"', "'"], long: ["`"], words: JS },
  py: { line: ["#"], strings: ['"', "'"], long: ['"""', "'''"], words: words("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield"), decorator: true },
  rs: { ...C_LIKE, strings: ['"'], words: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char f32 f64 i8 i16 i32 i64 isize str u8 u16 u32 u64 usize String Vec Option Result") },
  go: { ...C_LIKE, long: ["`"], words: words("any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface map nil package range return rune select string struct switch true type uint var") },
  c: { ...C_LIKE, words: C, hash: true },
  java: { ...C_LIKE, long: ['"""'], words: JAVA, decorator: true },
  swift: { ...C_LIKE, long: ['"""'], words: words("as async await break case catch class continue default defer do else enum extension false fileprivate for func guard if import in init inout internal is let nil open override private protocol public repeat rethrows return self Self static struct subscript super switch throw throws true try typealias var where while") },
  sh: { line: ["#"], strings: ['"', "'"], words: SHELL, variable: true },
  sql: { line: ["--"], block: [["/*", "*/"]], strings: ["'", '"'], words: SQL, isCaseless: true },
  json: { strings: ['"'], words: words("true false null"), key: true },
  yaml: { line: ["#"], strings: ['"', "'"], words: words("true false null yes no"), key: true },
  toml: { line: ["#"], strings: ['"', "'"], long: ['"""'], words: words("true false"), key: true },
  css: { block: [["/*", "*/"]], strings: ['"', "'"], words: words("important media supports import keyframes layer from to"), key: true },
  html: { block: [["<!--", "-->"]], strings: ['"', "'"], tag: true, words: words("") },
  rb: { line: ["#"], strings: ['"', "'"], words: words("alias and begin break case class def do else elsif end ensure false for if in module next nil not or puts raise require rescue return self super then true unless until when while yield") },
  php: { ...C_LIKE, line: ["//", "#"], words: new Set([...JAVA, ..."echo foreach function array".split(" ")]), variable: true },
  lua: { line: ["--"], strings: ['"', "'"], words: words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while") },
  hs: { line: ["--"], block: [["{-", "-}"]], strings: ['"'], words: words("case class data deriving do else if import in infix instance let module newtype of then type where") },
  diff: { strings: [], words: words(""), diff: true },
};

const ALIASES = {
  javascript: "js", jsx: "js", ts: "js", tsx: "js", typescript: "js", mjs: "js", node: "js", python: "py", python3: "py", rust: "rs", golang: "go", h: "c", cpp: "c",
  "c++": "c", cc: "c", hpp: "c", cuda: "c", wgsl: "rs", glsl: "c", objc: "c", cs: "java", csharp: "java", "c#": "java", kotlin: "java", kt: "java", scala: "java",
  dart: "java", bash: "sh", shell: "sh", zsh: "sh", console: "sh", jsonc: "json", json5: "json", yml: "yaml", ini: "toml", scss: "css", less: "css", xml: "html", svg: "html",
  vue: "html", ruby: "rb", haskell: "hs", patch: "diff", postgresql: "sql", mysql: "sql", sqlite: "sql",
};

/** The rules of a language by a name of it; null if it has none here. */
const rulesOf = (name) => {
  const key = name.toLowerCase();
  return LANGUAGES[Object.hasOwn(ALIASES, key) ? ALIASES[key] : key] && Object.hasOwn(LANGUAGES, ALIASES[key] ?? key) ? LANGUAGES[ALIASES[key] ?? key] : null;
};

const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const NUMBER = /(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?)[a-zA-Z]*\d*/y;
/** Longer lines are left as they are: nobody reads them. */
const LONGEST = 2000;

export class Highlighter {
  #rules;
  /** End and kind of a comment or a string that goes over lines. */
  #until = null;

  constructor(language) {
    this.#rules = rulesOf(language);
  }

  /** Pieces of a line: `[kind, text]`, where the kind of plain text is an empty one. */
  line(text) {
    const rules = this.#rules;
    if (!rules || text.length > LONGEST) return [["", text]];
    if (rules.diff) return [[{ "+": "added", "-": "removed", "@": "comment" }[text[0]] ?? "", text]];
    const out = [];
    const put = (kind, piece) => {
      if (piece === "") return;
      if (out.at(-1)?.[0] === kind) out.at(-1)[1] += piece;
      else out.push([kind, piece]);
    };
    let at = 0;
    while (at < text.length) {
      if (this.#until) {
        const [end, kind] = this.#until;
        const found = text.indexOf(end, at);
        const to = found < 0 ? text.length : found + end.length;
        put(kind, text.slice(at, to));
        if (found >= 0) this.#until = null;
        at = to;
        continue;
      }
      const [kind, to] = this.#piece(text, at);
      put(kind, text.slice(at, to));
      at = to;
    }
    return out;
  }

  /** Pieces of a line that may still grow. */
  peek(text) {
    const before = this.#until;
    const out = this.line(text);
    this.#until = before;
    return out;
  }

  /** Kind and end of the piece that begins here. */
  #piece(text, at) {
    const rules = this.#rules;
    const begins = (mark) => text.startsWith(mark, at);
    if (rules.line?.some(begins) && (text[at] !== "#" || at === 0 || /\s/.test(text[at - 1]))) return ["comment", text.length];
    const block = rules.block?.find(([open]) => begins(open));
    if (block) return this.#long(text, at, block[0], block[1], "comment");
    const long = rules.long?.find(begins);
    if (long) return this.#long(text, at, long, long, "string");
    if (rules.strings.includes(text[at])) return string(text, at, rules);
    if (rules.hash && text[at] === "#") return ["keyword", ends(text, at + 1, WORD)];
    if (rules.decorator && text[at] === "@") return ["type", ends(text, at + 1, WORD)];
    if (rules.variable && text[at] === "$") return ["type", ends(text, at + 1, WORD)];
    if (rules.tag && text[at] === "<") return ["keyword", ends(text, at + (text[at + 1] === "/" ? 2 : 1), WORD)];
    if (/\d/.test(text[at])) return ["number", ends(text, at, NUMBER)];
    const to = ends(text, at, WORD);
    if (to > at) return [this.#word(text, at, to), to];
    return ["", at + (text.codePointAt(at) > 0xffff ? 2 : 1)];
  }

  #word(text, at, to) {
    const rules = this.#rules;
    const word = text.slice(at, to);
    if (rules.words.has(rules.isCaseless ? word.toLowerCase() : word)) return "keyword";
    if (rules.key) return /^[\w-]*\s*[:=]/.test(text.slice(to, to + 40)) && text.slice(0, at).trim() === "" ? "type" : "";
    if (text[to] === "(") return "function";
    return /^[A-Z][a-z]/.test(word) ? "type" : "";
  }

  #long(text, at, open, close, kind) {
    const found = text.indexOf(close, at + open.length);
    if (found < 0) this.#until = [close, kind];
    return [kind, found < 0 ? text.length : found + close.length];
  }
}

function ends(text, at, expression) {
  expression.lastIndex = at;
  return expression.test(text) ? expression.lastIndex : at;
}

/** A string of one line; the key of an object if a colon follows. */
function string(text, at, rules) {
  const mark = text[at];
  let to = at + 1;
  while (to < text.length && text[to] !== mark) to += text[to] === "\\" ? 2 : 1;
  to = Math.min(to + 1, text.length);
  return [rules.key && /^\s*:/.test(text.slice(to, to + 8)) ? "type" : "string", to];
}
