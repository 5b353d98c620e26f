//! Templates that would take a stack, the memory or the time of a process.

/// Chains and nests of `n` parts, each of which once ended a process or could.
const CHAINS: &[(&str, &str, &str, &str)] = &[
    ("elif", "{% if a %}", "{% elif a %}", "{% endif %}"),
    ("if", "", "{% if a %}", ""),
    ("if ended", "", "{% if true %}", "ENDS"),
    ("for", "", "{% for a in [1] %}", ""),
    ("with", "", "{% with a = a %}", ""),
    ("filter block", "", "{% filter upper %}", ""),
    ("macro", "", "{% macro m() %}", ""),
    ("call", "", "{% call m() %}", ""),
    ("set block", "", "{% set a %}", ""),
    ("minus", "{{ ", "-", "1 }}"),
    ("minus apart", "{{ ", "- ", "1 }}"),
    ("plus sign", "{{ ", "+", "1 }}"),
    ("not", "{{ ", "not ", "1 }}"),
    ("sum", "{{ 1", "+1", " }}"),
    ("product", "{{ 1", "*1", " }}"),
    ("power", "{{ 1", "**1", " }}"),
    ("concatenation", "{{ 1", "~1", " }}"),
    ("and", "{{ 1", " and 1", " }}"),
    ("or", "{{ 0", " or 0", " }}"),
    ("comparison", "{{ 1", "<1", " }}"),
    ("in", "{{ 1", " in [1]", " }}"),
    ("attribute", "{{ a", ".b", " }}"),
    ("index", "{{ a", "[0]", " }}"),
    ("slice", "{{ ''", "[:]", " }}"),
    ("call of call", "{{ a", "()", " }}"),
    ("filter", "{{ 'a'", "|upper", " }}"),
    ("test", "{{ 1", " is defined", " }}"),
    ("conditional", "{{ ", "1 if 1 else ", "1 }}"),
    ("conditional behind", "{{ 1", " if 1", " }}"),
    ("list", "{{ ", "[", ""),
    ("list closed", "{{ ", "[", "CLOSED"),
    ("tuple", "{{ ", "(", ""),
    ("dict", "{{ ", "{1:", ""),
    ("argument", "{{ ", "a(", ""),
    ("subscript", "{{ ", "a[", ""),
    ("target", "{% set ", "(", ""),
    ("targets", "{% set a", ",a", " = 1 %}"),
    ("text after text", "{{ ", "'a' ", "}}"),
    ("arguments", "{{ a(", "1,", "1) }}"),
    ("items", "{{ [", "1,", "1] }}"),
    ("comment", "", "{#", ""),
    ("raw", "", "{% raw %}", ""),
    ("opening", "", "{{", ""),
    ("parameters", "{% macro m(a", ",a", ") %}{% endmacro %}{{ m() }}"),
];

/// Programs of which each is short.
const PROGRAMS: &[(&str, &str)] = &[
    ("namespace in itself", "{% set ns = namespace() %}{% set ns.s = ns %}{{ ns }}"),
    (
        "namespace in itself, compared",
        "{% set a = namespace() %}{% set b = namespace() %}{% set a.x = b %}{% set b.x = a %}{{ a == b }}{{ [a] == [b] }}",
    ),
    ("namespace in itself, as JSON", "{% set ns = namespace() %}{% set ns.s = ns %}{{ ns|tojson }}"),
    (
        "list in list",
        "{% set ns = namespace(s=[]) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}",
    ),
    (
        "tuple in tuple",
        "{% set ns = namespace(s=()) %}{% for i in range(99999) %}{% set ns.s = (ns.s,) %}{% endfor %}{{ ns.s == ns.s }}",
    ),
    (
        "dict in dict",
        "{% set ns = namespace(s={}) %}{% for i in range(99999) %}{% set ns.s = {'a': ns.s} %}{% endfor %}{{ ns.s }}",
    ),
    (
        "dict() in dict()",
        "{% set ns = namespace(s={}) %}{% for i in range(99999) %}{% set ns.s = dict(a=ns.s) %}{% endfor %}{{ ns.s }}",
    ),
    (
        "list of filters in itself",
        "{% set ns = namespace(s=[]) %}{% for i in range(99999) %}{% set ns.s = [ns.s]|list %}{% endfor %}{{ ns.s|tojson }}",
    ),
    (
        "batch in batch",
        "{% set ns = namespace(s=[1]) %}{% for i in range(99999) %}{% set ns.s = ns.s|batch(1)|list %}{% endfor %}{{ ns.s }}",
    ),
    (
        "groups in groups",
        "{% set ns = namespace(s=[1]) %}{% for i in range(99999) %}{% set ns.s = [{'a': 1, 'b': ns.s}]|groupby('a')|list %}{% endfor %}{{ ns.s }}",
    ),
    (
        "items of items",
        "{% set ns = namespace(s=1) %}{% for i in range(99999) %}{% set ns.s = {1: ns.s}.items() %}{% endfor %}{{ ns.s }}",
    ),
    (
        "methods of methods",
        "{% set ns = namespace(s={}) %}{% for i in range(99999) %}{% set ns.s = {'a': ns.s}.get %}{% endfor %}{{ ns.s }}",
    ),
    ("varargs of varargs", "{% macro m() %}{{ m([varargs]) }}{% endmacro %}{{ m(1) }}"),
    ("macro without end", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
    (
        "macros in turn",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    ),
    ("macro by default", "{% macro m(a=m()) %}{% endmacro %}{{ m() }}"),
    ("callers", "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}"),
    (
        "map of map",
        "{{ [[1]]|map('map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'list')|list }}",
    ),
    ("recursive loop", "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
    ("loops in loops", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
    (
        "loops of long texts",
        "{% set t = 'a' * 999999 %}{% for a in range(99999) %}{% set b = t|upper %}{% endfor %}",
    ),
    ("wide format", "{{ '{:>9999999999}'.format(1) }}"),
    ("wide format of text", "{{ '{:>9999999999}'.format('a') }}"),
    ("wide nested format", "{{ '{:{}}'.format(1, 9999999999) }}"),
    ("precise format", "{{ '{:.9999999999f}'.format(1.0) }}"),
    ("precise format of integers", "{{ '%.99999999d' % 1 }}"),
    ("width beyond all", "{{ '{:99999999999999999999999999999999999999999}'.format(1) }}"),
    ("grouped zeros", "{{ '{:0999999999,}'.format(1) }}"),
    ("percent format", "{{ '%0999999999d'|format(1) }}"),
    ("percent format by star", "{{ '%*d' % (9999999999, 1) }}"),
    ("percent precision", "{{ '%.99999999f' % 1.5 }}"),
    ("percent of text", "{{ '%9999999999s' % 'a' }}"),
    ("batch", "{{ [1]|batch(10**10, 'x')|list }}"),
    ("slice", "{{ [1]|slice(10**11)|list }}"),
    ("slice with filling", "{{ [1]|slice(10**11, 'x')|list }}"),
    ("center", "{{ 'a'.center(10**12) }}"),
    ("ljust", "{{ 'a'.ljust(10**12) }}"),
    ("rjust", "{{ 'a'.rjust(10**12, 'é') }}"),
    ("zfill", "{{ '1'.zfill(10**12) }}"),
    ("center filter", "{{ 'a'|center(10**12) }}"),
    ("expandtabs", "{{ '\t\t'.expandtabs(10**12) }}"),
    ("indent", "{{ 'a\na'|indent(10**12) }}"),
    ("wrapped to one character", "{{ ('a-b ' * 999999)|wordwrap(1, wrapstring='x' * 99) }}"),
    ("wrapped within a word", "{{ ('a' * 9999999)|wordwrap(10**12) }}{{ ('a-' * 999999)|wordwrap(1) }}"),
    ("wrapped between hyphens", "{{ ('-' * 9999999)|wordwrap(2) }}"),
    ("brackets of addresses", "{{ ('(' * 999999 ~ ')' * 999999)|urlize }}"),
    ("addresses", "{{ ('a@b.c (www.a.com) ' * 999999)|urlize(1, rel='x' * 999) }}"),
    ("schemes", "{{ ('ab:c ' * 9999)|urlize(extra_schemes=['xy:'] * 9999) }}"),
    ("indent by text", "{% set t = 'a' * 9999999 %}{{ ('a\n' * 9999)|indent(t) }}"),
    ("JSON indent", "{{ ([[[[1]]]] * 99999)|tojson(indent=10**12)|length }}"),
    ("JSON separators", "{{ ([1] * 99999)|tojson(separators=('a' * 9999, 'b')) }}"),
    ("text times", "{{ 'abc' * 10**12 }}"),
    ("list times", "{{ [1] * 10**12 }}"),
    ("empty times", "{{ '' * 10**30 }}{{ [] * 10**30 }}"),
    (
        "doubled text",
        "{% set ns = namespace(x='bb') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    ),
    (
        "doubled list",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    ),
    (
        "shared lists",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    ),
    (
        "shared lists compared",
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    ),
    (
        "shared lists ordered",
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x < ns.y }}",
    ),
    (
        "shared tuples as keys",
        "{% set ns = namespace(x=(1,)) %}{% for i in range(99) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1}[ns.x] }}",
    ),
    (
        "shared tuples in a set",
        "{% set ns = namespace(x=(1,)) %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ [ns.x, ns.x]|unique|list|length }}",
    ),
    (
        "shared lists joined",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|join }}",
    ),
    (
        "shared lists as JSON",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
    ),
    ("replace", "{% set a = 'a' * 99999 %}{{ a.replace('a', a) }}"),
    ("replace of nothing", "{% set a = 'a' * 99999 %}{{ a|replace('', a) }}"),
    ("join", "{% set a = 'a' * 99999 %}{{ a.join(('b' * 99999)|list) }}"),
    ("join filter", "{% set a = 'a' * 99999 %}{{ range(99999)|join(a) }}"),
    ("format of format", "{% set a = '%s' * 9999 %}{{ a % ((('b' * 99999),) * 9999) }}"),
    ("braces", "{{ ('{0}' * 99999).format('b' * 99999) }}"),
    ("opening braces", "{{ ('{' * 999999).format(1) }}"),
    ("long field", "{{ ('{0' ~ ('[0]' * 99999) ~ '}').format([1]) }}"),
    ("time format", "{{ strftime_now('%c' * 9999999) }}"),
    ("range", "{{ range(10**10)|list }}"),
    ("ranges", "{{ range(99999)|map('string')|map('list')|list|string|length }}"),
    ("ends of integers", "{{ range(-9223372036854775808, 9223372036854775807, 9223372036854775807)|list }}"),
    (
        "steps of slices",
        "{{ ''[::-1] }}{{ [][::-1] }}{{ 'ab'[::-9223372036854775808] }}{{ [1, 2][9223372036854775807::9223372036854775807] }}{{ range(3)[::-9223372036854775808]|list }}",
    ),
    (
        "steps of ranges",
        "{{ range(0, 1, -9223372036854775808)|list }}{{ range(9223372036854775807, -9223372036854775808, -9223372036854775808)|list }}",
    ),
    (
        "slices beyond integers",
        "{{ 'abc'[-10**37:10**37:10**37] }}{{ range(5)[::10**37][::10**37][::10**37]|list }}",
    ),
    ("integers", "{{ 10**38 * 10 }}"),
    ("powers", "{{ 2**(2**62) }}"),
    ("powers of one", "{{ 1**(2**100) }}{{ 0**(2**100) }}"),
    ("smallest integer", "{{ (-170141183460469231731687303715884105727 - 1) // -1 }}"),
    (
        "smallest integer, absolute",
        "{{ (-170141183460469231731687303715884105727 - 1)|abs }}{{ -(-170141183460469231731687303715884105727 - 1) }}",
    ),
    (
        "rounding",
        "{{ 1.5|round(10**9) }}{{ 1.5|round(-10**9) }}{{ 5|round(-10**9) }}{{ (10**37)|round(-37) }}",
    ),
    (
        "not a number",
        "{% set nan = 1e999 - 1e999 %}{{ [nan, 1, nan, 2, nan, 0]|sort }}{{ [nan]|unique|list }}{{ nan|int }}{{ nan|round }}{{ {nan: 1}[nan] }}",
    ),
    ("infinity", "{{ 1e999|int }}{{ 1e999|round|string }}{{ '%d' % 1e999 }}"),
    ("sort", "{{ (range(99999)|list * 9)|sort(reverse=true)|length }}"),
    ("sort of long texts", "{% set a = 'a' * 99999 %}{{ ([a ~ 1, a ~ 2, a ~ 0] * 99)|sort|length }}"),
    (
        "searches",
        "{% set a = range(99999)|list %}{% for i in range(99999) %}{% if -1 in a %}{% endif %}{% endfor %}",
    ),
    (
        "searches in text",
        "{% set a = 'ab' * 999999 %}{% for i in range(99999) %}{% if 'abb' in a %}{% endif %}{% endfor %}",
    ),
    (
        "searches by method",
        "{% set a = 'ab' * 999999 %}{% for i in range(99999) %}{% set b = a.find('abb') %}{% endfor %}",
    ),
    ("strip by a set", "{{ ('a' * 9999999).strip('bcdefghijklmnopqrstuvwxyz' * 99 ~ 'a') }}"),
    ("splits", "{{ ('a ' * 9999999).split()|length }}"),
    ("lines", "{{ ('\n' * 9999999).splitlines()|length }}"),
    ("characters", "{{ ('ab' * 9999999)|list|length }}"),
    (
        "indices of text",
        "{% set a = 'é' * 999999 %}{% for i in range(99999) %}{% set b = a[999998] %}{% endfor %}",
    ),
    ("words", "{{ ('a ' * 9999999)|title|wordcount }}"),
    ("tags", "{{ ('<' * 9999999)|striptags|length }}"),
    ("tags in turn", "{{ ('<>' * 9999999)|striptags|length }}"),
    ("quotes", "{{ ['\x01' * 9999999]|string|length }}"),
    ("capitals", "{{ ('ŉ' * 9999999)|upper|length }}"),
    (
        "escapes",
        "{{ ('\x01' * 9999999)|tojson|length }}{{ ('\"' * 9999999)|escape|length }}{{ ('é' * 9999999)|urlencode|length }}",
    ),
    (
        "namespaces",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% set a = namespace(a='b' * 99) %}{% endfor %}{% endfor %}",
    ),
    (
        "macros",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% macro m() %}{% endmacro %}{% endfor %}{% endfor %}",
    ),
    (
        "generators",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% set a = [1]|map('string') %}{% endfor %}{% endfor %}",
    ),
    (
        "cyclers",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% set a = cycler(1) %}{% set b = joiner() %}{% endfor %}{% endfor %}",
    ),
    ("attributes of a namespace", "{% set ns = namespace(**{'a': 1}) %}{{ ns.a }}"),
    ("many arguments", "{% macro m() %}{{ varargs|length }}{% endmacro %}{{ m(*('a' * 999999)) }}"),
    (
        "many keywords",
        "{% macro m() %}{{ kwargs|length }}{% endmacro %}{{ m(**dict((('a' ~ 'b') * 9, 1),)) }}",
    ),
    ("pairs", "{{ dict([(1, 2)] * 999999)|length }}"),
    ("dict of many", "{{ dict('ab' * 0)|length }}{{ {}.fromkeys(range(99999), 'a' * 9)|length }}"),
    ("colliding keys", "{{ {}.fromkeys(range(0, 10**18, 10**13))|length }}"),
    (
        "tuples without end in sets",
        "{% set ns = namespace(x=(1,)) %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {}.get(ns.x) }}{{ ns.x in {} }}{{ ns.x.count == ns.x.count }}",
    ),
    ("open macro in a loop", "{% for a in [1] %}{% macro m() %}{{"),
    ("open string", "{{ '"),
    ("open escape", "{{ '\\"),
    ("bad escape", "{{ '\\x' }}"),
    ("surrogate", "{{ '\\ud800' }}"),
    ("octal escape", "{{ '\\777' }}{{ '\\0' }}"),
    ("long number", "{{ 99999999999999999999999999999999999999999999 }}"),
    ("float number", "{{ 1e99999 }}"),
    ("hex", "{{ 0xffffffffffffffffffffffffffffffffffffff }}"),
    ("lone brace", "{{ } }}"),
    ("nothing", ""),
    ("opening alone", "{{"),
    ("block alone", "{%"),
    ("comment alone", "{#"),
    ("raw alone", "{% raw %}"),
    ("end of raw alone", "{% raw %}{% endraw"),
    ("signs", "{%- -%}"),
    ("signed raw", "{%-raw-%}{%-endraw-%}"),
    ("zero byte", "\0{{ '\0' }}"),
    ("byte order mark", "\u{feff}{{ 1 }}"),
    (
        "dead loop",
        "{% set ns = namespace() %}{% for a in [1] %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}",
    ),
    (
        "dead macro scope",
        "{% set ns = namespace() %}{% for a in [1] %}{% set b = 5 %}{% macro m() %}{{ b }}{% endmacro %}{% set ns.m = m %}{% endfor %}{{ ns.m() }}",
    ),
    ("digits", "{{ ('1' * 60000000)|int }}{{ ('_' * 60000000)|int(0, 36) }}"),
    (
        "keys that equal none",
        "{% set nan = 1e999 - 1e999 %}{{ ([nan] * 99999)|unique|list|length }}{{ {nan: 1}[nan] }}",
    ),
    ("generators as keys", "{{ ([[1]] * 99999)|map('reverse')|unique|list|length }}"),
    ("methods as keys", "{{ (['a'] * 99999)|map('attr', 'lower')|unique|list|length }}"),
    (
        "missing names",
        "{% set s = 'a' * 9999999 %}{{ [{}[s], {}[s], {}[s], {}[s], {}[s], {}[s], {}[s]] * 9 }}",
    ),
    ("missing names by path", "{{ ([1] * 999999)|map(attribute='a' * 60)|list|length }}"),
    ("long keywords", "{% macro m() %}{{ kwargs|length }}{% endmacro %}{{ m(**{'a' * 50000000: 1}) }}"),
    (
        "smallest integer in ranges",
        "{% set n = -170141183460469231731687303715884105727 - 1 %}{{ n in range(5, 9) }}{{ n in range(0, -9, -1) }}",
    ),
    (
        "digits of numbers",
        "{% for i in range(99999) %}{% for j in range(999) %}{% set x = '%.4000g' % 1.5e300 %}{% set x = 1.7e300|round(300) %}{% endfor %}{% endfor %}",
    ),
    ("loop called", "{% for a in [1] %}{{ loop([1]) }}{% endfor %}"),
];

/// Texts and lists with an expression that reads them, in loops: short programs whose time is that of the reading.
const READS: &[(&str, &str, &str)] = &[
    ("lengths", LONG, "s|length"),
    ("counts of texts", LONG, "[s]|map('count')|list"),
    ("whole numbers", LONG, "s|int"),
    ("numbers", LONG, "s|float"),
    ("words counted", LONG, "s|wordcount"),
    ("lower case", LONG, "s is lower"),
    ("upper case", LONG, "[s]|select('upper')|list"),
    ("sameness", LONG, "s is sameas t"),
    ("sequences", LONG, "s is sequence"),
    ("letters", LONG, "s.isalpha()"),
    ("printable characters", LONG, "s.isprintable()"),
    ("replaced by nothing", LONG, "s.replace('é', '')"),
    ("single characters counted", LONG, "s.count('é')"),
    ("keys", LONG, "{s: 1}"),
    ("keys of items", LONG, "{t: 1}[s]"),
    ("keys that are missing", LONG, "{}[s]"),
    ("keys in", LONG, "s in {t: 1}"),
    ("keys by method", LONG, "{}.get(s)"),
    ("keys by function", LONG, "dict([(s, 1)])"),
    ("keys compared", LONG, "{s: 1} == {t: 1}"),
    ("keys of texts that tuples share", "{% set s = ('é' * 999999,) * 900 %}", "s in {}"),
    ("keys of many items", "{% set s = (1,) * 900 %}", "s in {}"),
    ("attributes by filter", LONG, "1|attr(s)"),
    ("prefixes", LONG, "s.startswith((t, t, t, t, t, t))"),
    ("prefixes of nothing", LONG, "''.startswith(s)"),
    ("separators of nothing", LONG, "[]|tojson(separators=(s, s))"),
    ("texts formatted", LONG, "('%c' % s[:1]) ~ ('%.0s' % s)"),
    (
        "names in formats",
        "{% set s = '%(' ~ 'a' * 999999 ~ ').0s' %}{% set d = {'a' * 999999: 1} %}",
        "s % d",
    ),
    ("percents", "{% set s = '%%' * 999999 %}", "s % ()"),
    ("escapes as JSON", "{% set s = '\x01' * 999999 %}", "s|tojson"),
    ("escapes in lists", "{% set s = '\x01' * 999999 %}", "[s]|string"),
    ("escapes of addresses", LONG, "s|urlencode"),
    ("sums", "{% set s = range(99999)|list %}", "s|sum"),
    ("empty attributes", "{% set s = {}.fromkeys(range(99999)) %}", "s|xmlattr"),
    ("searches of no items", "{% set s = [1] * 600000 %}", "s.count(1, 0, 0)"),
];

const LONG: &str = "{% set s = 'é' * 999999 %}{% set t = 'é' * 999998 ~ 'ê' %}";

/// All templates with their names.
pub(crate) fn corpus() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        PROGRAMS.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect();
    for (name, start, link, end) in CHAINS {
        for n in [90, 1000, 100_000] {
            let end = match *end {
                "ENDS" => "{% endif %}".repeat(n),
                "CLOSED" => "]".repeat(n) + " }}",
                end => end.to_owned(),
            };
            all.push((format!("{n} x {name}"), start.to_string() + &link.repeat(n) + &end));
        }
    }
    for (name, start, expression) in READS {
        let loops = "{% for i in range(99999) %}{% for j in range(9999) %}";
        let source = format!("{start}{loops}{{% set x = {expression} %}}{{% endfor %}}{{% endfor %}}");
        all.push((format!("{name}, again and again"), source));
    }
    let long = "v".repeat(8000);
    let names: String = (10..40).map(|i| format!("{{% set {long}{i} = 1 %}}")).collect();
    let loops = format!("{{% for i in range(99999) %}}{{% for i in range(9999) %}}{{{{ {long}99 }}}}");
    all.push(("long names".to_owned(), names + &loops + "{% endfor %}{% endfor %}"));
    let loops = format!(
        "{{% for i in range(99999) %}}{{% for i in range(9999) %}}{{{{ {{}}.{} }}}}",
        long.repeat(50)
    );
    all.push(("long attributes".to_owned(), loops + "{% endfor %}{% endfor %}"));
    let targets =
        format!("{{% for i in range(99999) %}}{{% set {}a = [] %}}{{% endfor %}}", "a,".repeat(99_999));
    all.push((
        "many targets".to_owned(),
        targets.replace("[]", "s").replacen("{%", "{% set s = [1] * 100000 %}{%", 1),
    ));
    let variables: String = (0..20_000).map(|i| format!("{{% set v{i} = 1 %}}")).collect();
    let loops = "{% for i in range(9999) %}{% for i in range(9999) %}{{ none_such }}{% endfor %}{% endfor %}";
    all.push(("many variables".to_owned(), variables + loops));
    all
}
