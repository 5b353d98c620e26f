"""Writes expressions.json: templates with the text or the failure that Jinja2 gives, in the environment that
transformers gives to chat templates. `pip install jinja2==3.1.6`, then `python3 make.py`."""

import json
from pathlib import Path

from jinja2 import ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise RuntimeError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception

VARIABLES = {
    "text": "Hello, World", "empty": "", "words": "the quick  brown\tfox\njumps", "accents": "Élan übergroß ß ﬁ",
    "quotes": "it's \"so\"", "n": 7, "zero": 0, "minus": -3, "big": 12345678901234567890, "x": 2.5, "tiny": 1e-7,
    "huge": 1e16, "yes": True, "no": False, "nothing": None, "list": [3, 1, 2], "names": ["b", "A", "c", "a"],
    "nested": [[1, 2], [3, [4]]], "none_list": [],
    "dict": {"b": 1, "a": [1, 2.0], "C": None}, "people": [
        {"name": "Ann", "age": 31, "tags": ["x", "y"]}, {"name": "bob", "age": 25, "tags": []},
        {"name": "Cy", "age": 31, "admin": True}],
    "html": "<p>a &amp; <b>b</b></p> <!-- c --> d", "floats": [0.1, 1e-5, 1e15, 1e16, 1e22, -0.0, 123456.789, 1.0],
}

E = []


def e(*expressions):
    E.extend("{{ " + expression + " }}" for expression in expressions)


def t(*templates):
    E.extend(templates)


# Printing.
e("n", "x", "tiny", "huge", "big", "yes", "nothing", "text", "list", "nested", "dict", "people", "floats", "quotes",
  "[quotes, text, 'a\\nb\\t\\\\']", "(1,)", "(1, 2)", "()", "[]", "{}", "{'a': (1, [2])}", "missing", "[missing]",
  "1e-7", "1e16", "1e15", "123456789012345680.0", "0.1 + 0.2", "1/3", "-0.0", "1e100", "1e-4", "1e-5", "100.0",
  "5e-324", "1.7976931348623157e308", "2**0.5", "10**20", "2**-1", "[1e-7, 1e16]", "tiny|string", "'' ~ tiny",
  "[tiny, huge]|join(',')", "{'x': tiny}|string", "tiny|tojson", "[huge, 1.0]|tojson", "1_000", "0x1F", "0b101",
  "0o17", "1e3", "1.5e-3", "'\\u00e9\\x41\\101'", "'a' 'b' \"c\"", "['\\u200b\\u00a0é\\x7f']", "range(3)",
  "range(1, 10, 3)", "true", "True", "none", "None", "false", "'{% x %}'", "dict.items()", "dict.keys()",
  "dict.values()", "{1: 2, 1.5: 3, none: 4, true: 5}", "namespace(a=1)")
# Arithmetic.
e("1 + 2 * 3", "(1 + 2) * 3", "7 // 2", "-7 // 2", "7 % 3", "-7 % 3", "7 % -3", "7.5 // 2", "-7.5 % 2", "7 / 2",
  "4 / 2", "2 ** 3", "2 ** 3 ** 2", "-2 ** 2", "+n", "-n", "--n", "not n", "not not n", "n - -3", "1 / 0", "1 // 0",
  "1 % 0", "'a' * 3", "3 * 'a'", "'a' * -1", "[1, 2] * 2", "[1] + [2]", "(1,) + (2,)", "(1, 2) * 2", "'a' + 'b'",
  "'a' + 1", "1 + 'a'", "[1] + (2,)", "none + 1", "missing + 1", "true + 1", "true * 2.5", "'a' ~ 1 ~ none ~ [1]",
  "'a' ~ missing ~ 'b'", "1 ~ 2", "1 + 2 ~ 3 + 4", "2 * 3 ~ 4", "n | string + 'x'", "-5 | abs", "-x|abs", "1.0 + 1",
  "1 - 1.0", "9007199254740993 + 0.0", "2 ** 62", "2 ** 64", "1e308 * 10", "0.1 * 3", "7.0 // 2.0", "'%d' % 3 + '!'",
  "5 % 2.5", "-1 // 3.0", "1.5 % -1")
# Comparison and logic.
e("1 == 1.0", "1 == true", "'1' == 1", "[1, 2] == [1, 2.0]", "(1, 2) == [1, 2]", "{'a': 1} == {'a': 1.0}", "1 < 2 < 3",
  "1 < 3 < 2", "1 < 2 == true", "'a' < 'b'", "'a' < 1", "[1, 2] < [1, 3]", "[1] < [1, 0]", "(1, 2) <= (1, 2)",
  "none < 1", "missing == missing", "missing == none", "missing != ''", "1 in list", "9 in list", "'ell' in text",
  "'x' not in text", "'a' in dict", "'z' in dict", "1 in text", "1 in missing", "'a' in missing", "none in [none]",
  "2 in range(3)", "2.0 in (1, 2)", "1 in {1.0: 2}", "not 1 in [2]", "0 or 'a'", "'' and 1", "none or missing or 3",
  "1 and 2", "not none and 1", "1 if yes else 2", "1 if no", "1 if no else 2 if no else 3", "'a' if text is string else 'b'",
  "[] or {}", "0 == false", "'a' == 'a' == 'a'", "1 != 2 != 1", "list > [3]", "yes > no", "1 is eq 1", "1 is lt 2",
  "[] in [[]]", "{} in dict", "1 in 5", "1 in none")
# Subscripts.
e("list[0]", "list[-1]", "list[9]", "text[0]", "text[-1]", "text[99]", "dict['b']", "dict.b", "dict['z']", "dict.z.y",
  "dict['z']['y']", "missing.a", "missing['a']", "none.a", "n.a", "list.0", "nested.1.1.0", "people[0].name",
  "people[0]['name']", "text[1:3]", "text[:-1]", "text[::-1]", "text[::2]", "text[5:1:-1]", "list[1:]", "list[::-1]",
  "''[::-1]", "[][::-1]", "()[::-1]", "list[5:]", "list[-2:]", "list[:100]", "list[::0]", "(1, 2, 3)[1:]", "range(10)[2:5]",
  "range(10)[::-2]|list", "range(10)[3]", "text[none:2]", "text['a']", "list['a']", "list[1.0]", "list[true]",
  "accents[1:4]", "accents[::-1]", "dict.items", "dict.get", "text.upper", "list[-99:2]", "list[2:-99:-1]", "text[7:7]",
  "dict[['a']]", "{1: 'a'}[1]", "{1: 'a'}[1.0]", "{(1, 2): 'a'}[(1, 2)]", "{(1, 2): 'a'}[1, 2]", "list[9223372036854775807:]",
  "list[::9223372036854775807]", "list[::-9223372036854775808]", "''[::-9223372036854775808]", "range(5)[::-1]|list")
# Text methods.
e("text.upper()", "text.lower()", "text.swapcase()", "words.title()", "'hELLO wORLD'.capitalize()", "accents.upper()",
  "accents.lower()", "accents.title()", "accents.capitalize()", "accents.casefold()", "\"they're bill's\".title()",
  "text.split(', ')", "words.split()", "words.split(' ')", "words.split(None, 1)", "'a,b,c'.split(',', 1)",
  "'a,b,c'.rsplit(',', 1)", "' a b c '.rsplit(None, 1)", "' a b '.split()", "''.split()", "''.split(',')",
  "'a'.split('')", "'a,b,c'.rsplit(',')", "'a b c'.rsplit()", "'a,b,c'.split(sep=',', maxsplit=1)", "' a  b '.split(none, 0)",
  "'a=b=c'.partition('=')", "'a=b=c'.rpartition('=')", "'abc'.partition('=')", "'abc'.rpartition('=')", "'a'.partition('')",
  "'prefix-x'.removeprefix('prefix-')", "'x.txt'.removesuffix('.txt')", "'abc'.removeprefix('z')", "'hello'.index('l')",
  "'hello'.index('z')", "'hello'.find('l')", "'hello'.find('z')", "'hello'.rfind('l')", "'hello'.rindex('l')",
  "'hello'.find('l', 3)", "'hello'.find('l', -2)", "'hello'.find('l', 0, 2)", "'hello'.count('l')", "'aaa'.count('aa')",
  "'hello'.count('')", "'éé'.find('é', 1)", "'abc'.center(9)", "'abc'.center(8, '*')", "'abcd'.center(9, '-')",
  "'abc'.ljust(6) ~ '|'", "'abc'.rjust(6)", "'abc'.rjust(6, '.')", "'abc'.ljust(2)", "'42'.zfill(5)", "'-42'.zfill(5)",
  "'+4'.zfill(4)", "'abc'.zfill(2)", "'  a '.strip() ~ '|'", "'  a '.lstrip() ~ '|'", "'  a '.rstrip() ~ '|'",
  "'xxaxx'.strip('x')", "'xyaxy'.lstrip('yx')", "'abca'.rstrip('a')", "'a'.strip(none)", "'a-b-c'.replace('-', '+')",
  "'a-b-c'.replace('-', '', 1)", "'abc'.replace('', '-')", "'aaa'.replace('aa', 'b')", "'abc'.startswith('a')",
  "'abc'.startswith(('x', 'a'))", "'abc'.endswith('c')", "'abc'.endswith(('x',))", "'abc'.startswith('b', 1)",
  "'abc'.startswith(['a'])", "'abc'.startswith('')", "','.join(['a', 'b'])", "','.join([1])", "''.join('abc')", "'-'.join({'a': 1, 'b': 2})",
  "'a\\nb\\r\\nc'.splitlines()", "'a\\nb\\n'.splitlines()", "'a\\nb\\n'.splitlines(true)", "''.splitlines()", "'a\\x0bb'.splitlines()",
  "'abc'.isalpha()", "'ab1'.isalnum()", "'12'.isdigit()", "'1²'.isdigit()", "'1²'.isdecimal()", "'½'.isnumeric()", "''.isdigit()",
  "' \\t'.isspace()", "'abc'.islower()", "'ABC'.isupper()", "'A1'.isupper()", "'1'.isupper()", "'Ab Cd'.istitle()", "'AB'.istitle()",
  "'a_1'.isidentifier()", "'1a'.isidentifier()", "'é'.isascii()", "'a\\n'.isprintable()", "'a\\tb'.expandtabs(4)", "'a'.nosuch()",
  "'abc'.upper().lower()", "'a'.encode()|length", "list.count(1)", "list.index(2)", "list.index(9)", "(1, 1).count(1)",
  "list.append(1)", "list.copy()", "dict.get('a')", "dict.get('z')", "dict.get('z', 5)", "dict.pop('a')", "dict.update({})",
  "dict.copy()", "dict.items()|list", "dict.keys()|list", "dict.values()|list", "dict.items()|length", "'a' in dict.keys()",
  "dict.get(['a'])", "none.upper()", "missing.upper()", "text.upper", "(1).bit_length")
# Formats.
e("'%s' % n", "'%s %s' % (1, 'a')", "'%s' % [1]", "'%s' % (1, 2)", "'%d' % 3.7", "'%d' % 'a'", "'%5d|' % 3", "'%-5d|' % 3",
  "'%05d' % -3", "'%+d' % 3", "'% d' % 3", "'%x' % 255", "'%X' % 255", "'%#x' % 255", "'%o' % 8", "'%f' % x", "'%.2f' % 3.14159",
  "'%8.3f|' % 3.14159", "'%e' % 12345.678", "'%.2e' % 0.00012", "'%g' % 1e10", "'%g' % 0.0001", "'%g' % 1234567.0", "'%g' % 100000.0",
  "'%G' % 1e-10", "'%r' % 'a'", "'%s' % none", "'%%' % ()", "'%d%%' % 5", "'%c' % 65", "'%c' % 'z'", "'%(a)s-%(b)d' % {'a': 1, 'b': 2}",
  "'%s' % dict", "'%*d' % (5, 3)", "'%.*f' % (2, 1.5)", "'%.3s' % 'abcdef'", "'%5s|' % 'ab'", "'%-5s|' % 'ab'", "'%q' % 1", "'%' % 1", "'%s'|format(5)",
  "'%s %s'|format('a', 1)", "'%(k)s'|format(k=3)", "'x'|format(1)", "'%.0f' % 0.5", "'%.0f' % 1.5", "'%.0f' % 2.5", "'%.1f' % 0.25", "'%f' % 1e20",
  "'{}'.format(1)", "'{} {}'.format(1, 'a')", "'{1} {0}'.format(1, 2)", "'{a} {b}'.format(a=1, b=x)", "'{0.name} {0[age]}'.format(people[0])",
  "'{0[name]}'.format(people[0])", "'{0[1]}'.format(list)", "'{:>5}|'.format('a')", "'{:<5}|'.format(3)", "'{:^5}|'.format('a')", "'{:*^7}'.format('a')",
  "'{:05d}'.format(-3)", "'{:+d}'.format(3)", "'{: d}'.format(3)", "'{:,}'.format(1234567)", "'{:_}'.format(1234567)", "'{:,.2f}'.format(1234567.891)",
  "'{:x} {:X} {:o} {:b} {:#x} {:#b}'.format(255, 255, 8, 5, 255, 5)", "'{:e}'.format(12345.678)", "'{:.3e}'.format(12345.678)", "'{:g}'.format(1e-7)",
  "'{:.3}'.format(3.14159)", "'{:.3}'.format('abcdef')", "'{:.1%}'.format(0.256)", "'{:%}'.format(0.5)", "'{!r}'.format('a')", "'{!s:>4}'.format(1)",
  "'{:{}}|'.format('a', 5)", "'{:{w}}|'.format('a', w=4)", "'{{}}'.format()", "'{'.format(1)", "'}'.format(1)", "'{}'.format()", "'{} {1}'.format(1, 2)",
  "'{:d}'.format('a')", "'{:s}'.format(1)", "'{:z}'.format(1)", "'{}'.format(1e16)", "'{}'.format([1e-7])", "'{:010.2f}'.format(-3.14159)", "'{:=+8}'.format(5)",
  "'{:c}'.format(65)", "'{}'.format(none)", "'{:5}|'.format(true)", "'{}'.format(true)", "'{:08,}'.format(1234)", "'{:.0f}'.format(2.5)", "'{:5}|'.format(1.5)", "'{:#.0f}'.format(2.0)",
  "'{:.10}'.format(1.0)", "'{:.3}'.format(1234.5)")
# Filters.
e("minus|abs", "x|abs", "'a'|abs", "people[0]|attr('name')", "text|attr('upper')", "list|batch(2)|list", "list|batch(2, 0)|list", "[]|batch(2)|list",
  "'hello'|capitalize", "'HELLO w'|capitalize", "'a'|center(5) ~ '|'", "text|count", "missing|default('d')", "none|default('d')", "none|default('d', true)", "''|default('d', true)",
  "0|d(5)", "missing|default", "dict|dictsort", "dict|dictsort(true)", "{'a': 3, 'b': 1}|dictsort(by='value')", "{'a': 3, 'b': 1}|dictsort(false, 'value', true)", "'<a&\"\\'>'|escape",
  "0|filesizeformat", "1|filesizeformat", "999|filesizeformat", "1000|filesizeformat", "1234567|filesizeformat", "1e12|filesizeformat", "1024|filesizeformat(true)", "123456789|filesizeformat(binary=true)", "'1000'|filesizeformat",
  "list|first", "''|first", "[]|first", "'abc'|first", "dict|first", "'1.5'|float", "'a'|float", "'a'|float(2.5)", "none|float", "3|float", "'1e3'|float", "' 1 '|float", "'inf'|float",
  "people|groupby('age')|map('first')|list", "people|groupby('age')|map(attribute=1)|map('length')|list", "people|groupby('admin', default=false)|map('first')|list",
  "'a\\nb\\n\\nc'|indent", "'a\\nb\\n\\nc'|indent(2)", "'a\\nb\\n\\nc'|indent(2, true)", "'a\\nb\\n\\nc'|indent(2, false, true)", "'a\\nb\\n'|indent(2)", "'a\\nb\\n'|indent(2, blank=true)", "'a\\nb'|indent('> ')", "'a\\nb'|indent(width=1, first=true)",
  "'3'|int", "'3.7'|int", "3.7|int", "-3.7|int", "'x'|int", "'x'|int(5)", "'x'|int(default=none)", "none|int", "'0x1f'|int(0, 16)", "'1f'|int(base=16)", "true|int", "' 7 '|int", "'1_000'|int", "''|int", "'-5'|int", "'12abc'|int", "missing|int", "[]|int",
  "dict|items|list", "missing|items|list", "[1]|items|list", "list|join", "list|join(', ')", "names|join('-')", "people|join(', ', attribute='name')", "people|join(attribute='name')", "'abc'|join('.')", "[none, true, 1.0]|join(' ')", "[missing, 1]|join(',')", "1|join",
  "list|last", "''|last", "'abc'|last", "dict|last", "text|length", "dict|length", "missing|length", "n|length", "none|length", "'abc'|list", "dict|list", "range(3)|list", "missing|list", "(1, 2)|list", "n|list", "'ABC É'|lower", "5|lower",
  "names|map('upper')|list", "people|map(attribute='name')|list", "people|map(attribute='admin', default='-')|list", "people|map(attribute='tags.0')|list", "list|map('string')|join('+')", "list|map('add')|list", "['a']|map('replace', 'a', 'b')|list", "list|map|list", "list|map(attribute='x')|list",
  "list|max", "list|min", "names|max", "names|min", "names|max(true)", "[]|max", "people|max(attribute='age')", "people|min(attribute='age')", "['b', 1]|max", "'abc'|max", "text|pprint", "list|pprint", "[5]|random", "list|reject('odd')|list", "list|reject|list", "[0, 1, '']|reject|list",
  "people|rejectattr('admin')|map(attribute='name')|list", "people|rejectattr('admin', 'defined')|map(attribute='name')|list", "'a-b-c'|replace('-', '+')", "'a-b-c'|replace('-', '+', 1)", "'aaa'|replace('a', '')", "5|replace('5', '6')", "'abc'|replace('', '-')",
  "list|reverse|list", "'abc'|reverse", "dict|reverse|list", "n|reverse", "2.5|round", "3.5|round", "2.567|round(2)", "2.567|round(1, 'floor')", "2.511|round(2, 'ceil')", "1234.5|round(-2)", "5|round", "15|round(-1)", "25|round(-1)", "2.675|round(2)", "'a'|round", "0.5|round|int", "2.5|round(0, 'x')",
  "text|safe", "list|select('odd')|list", "list|select|list", "[0, 1, '', 'a', none]|select|list", "people|selectattr('admin')|map(attribute='name')|list", "people|selectattr('age', 'gt', 30)|map(attribute='name')|list", "people|selectattr('age', 'equalto', 25)|list", "people|selectattr('name', 'in', ['Ann'])|list",
  "list|select('>', 1)|list", "list|select('divisibleby', 2)|list", "list|select('nosuch')|list", "people|selectattr('tags')|map(attribute='name')|list", "range(7)|slice(3)|list", "range(7)|slice(3, 'x')|list", "range(6)|slice(3, 'x')|list", "[1]|slice(3)|list", "list|sort", "list|sort(reverse=true)", "names|sort", "names|sort(case_sensitive=true)",
  "people|sort(attribute='age')|map(attribute='name')|list", "people|sort(attribute='age,name')|map(attribute='name')|list", "people|sort(true, attribute='age')|map(attribute='name')|list", "[1, 'a']|sort", "'cab'|sort", "dict|sort", "[[2], [1]]|sort", "[none, 1]|sort", "[3, 1.5, true]|sort",
  "5|string", "none|string", "html|striptags", "'<a href=\"x\">y</a>  z'|striptags", "list|sum", "people|sum(attribute='age')", "[[1], [2]]|sum(start=[])", "[0.1, 0.2]|sum", "['a']|sum", "[]|sum", "'hello wORLD-foo (bar) it\\'s'|title", "words|title", "' a '|trim ~ '|'", "'xax'|trim('x')", "5|trim",
  "'foo bar baz qux'|truncate(9)", "'foo bar baz qux'|truncate(9, true)", "'foo bar baz qux'|truncate(11)", "'foo bar baz qux'|truncate(11, false, '...', 0)", "'foo bar'|truncate(3, true, '', 0)", "'foo'|truncate(1)", "('word ' * 60)|truncate", "'foobarbaz qux'|truncate(8, leeway=0)",
  "names|unique|list", "[1, 1.0, true, 2]|unique|list", "names|unique(true)|list", "people|unique(attribute='age')|map(attribute='name')|list", "[[1], [1]]|unique|list", "'ß é'|upper", "5|upper", "'a b/c?d=é&'|urlencode", "{'a b': 'c/d', 'e': 1}|urlencode", "[('a', 1), ('b', 'x y')]|urlencode", "5|urlencode", "none|urlencode",
  "words|wordcount", "\"it's a test\"|wordcount", "''|wordcount", "{'class': 'a b', 'id': none, 'x': '<'}|xmlattr", "text|nosuch", "text|upper|lower|title", "(text|upper).lower()", "text|upper is upper", "list|tojson", "dict|tojson", "text|tojson", "quotes|tojson", "accents|tojson", "accents|tojson(ensure_ascii=true)",
  "dict|tojson(indent=2)", "dict|tojson(sort_keys=true)", "{'b': 1, 'a': 2}|tojson(sort_keys=true)", "list|tojson(separators=(',', ':'))", "dict|tojson(separators=(',', ':'))", "[]|tojson(indent=2)", "{}|tojson(indent=2)", "{'a': {}}|tojson(indent=1)", "none|tojson", "missing|tojson", "{1: 2, none: 3, true: 4, 1.5: 5}|tojson", "(1, 2)|tojson", "{(1, 2): 3}|tojson",
  "dict|tojson(indent='--')", "'\\x01\\x1f\\u2028'|tojson", "'😀'|tojson(ensure_ascii=true)", "floats|tojson", "nested|tojson(indent=4)", "html|tojson", "big|tojson")
# Line breaks and links.
LINES = ["the quick brown fox jumps over the lazy dog", "  leading and  double   spaces  ", "a-b well-known twenty-one-year-old co-op e-mail --option x--y one---two a--", "supercalifragilistic-expialidocious words",
  "1-2 2019-12-31 a1-b2 ab-1 a_b-c_d", "wait--what? (no--yes) 'a'--b ...--c", "first line\nsecond line is longer\n\nlast\r\n", "\t tabs\tand\x0bmore\x0c", "éàü-ñandú ß\u00a0x \u3000 日本語テキスト", "----------- a", "-a- -bb-cc-", "e-a-b-cd ab-c-de"]
E.extend("{{ " + repr(line) + "|wordwrap(" + options + ")|tojson }}" for line in LINES for options in ["10", "5", "3", "1", "12, false", "4, break_on_hyphens=false", "6, false, break_on_hyphens=false", "wrapstring='|', width=8"])
e("text|wordwrap", "('word ' * 40)|wordwrap", "''|wordwrap", "''|wordwrap(0)", "'a'|wordwrap(0)", "'a'|wordwrap(-3)", "7|wordwrap", "none|wordwrap", "missing|wordwrap", "'a'|wordwrap('x')", "'a b'|wordwrap(1, wrapstring=3)", "'a b'|wordwrap(1, true, none, false)")
ADDRESSES = ["see http://example.com now", "https://example.com/a?b=c&d#e.", "(http://x.org)", "<http://x.org>", "http://x.org/a_(b)", "(see http://x.org/a_(b))", "((www.a.com))", "www.example.com, and www.example.com.", "example.com example.org/path example.dev a.com ab.com",
  "HTTP://Example.COM Www.X.com", "http://localhost http://localhost:8080/x", "http://1.2.3.4 http://1.2.3.4:80/a 1.2.3.4 http://1.2.3 http://1234.1.1.1", "http://[::1]/ http://[2001:db8::1]:8080 http://[g::1] http://[1:2:3:4:5:6:7:8] http://[1:2:3:4:5:6:7:8:9] http://[12345::]",
  "mailto:a@b.com a@b.com A.B+c@d-e.co.uk @a@b @b.com a@b a@b.c_d a@-b.c", "mailto:a@b.com?cc=d@e.com x:y@z.com www.a@b.com", "a\nhttp://x.org\tb  c", "http://x.org:99999 http://x.org:999999 http://x.org:a", "http://xn--bcher-kva.example http://bücher.de bücher.com http://a.xn--p1ai http://a.xn--a",
  "http:// http://a http://a.b http://a.b1 http://-a-.com http://a..com a..com", "\"http://x.org\" 'www.x.org' &lt;www.x.org&gt;", "ftp://x.org tel:123 tel: git+ssh://h", "http://x.org/a,b,. http://x.org)>.", "http://x.org/&gt; a&b", "x.com:80 x.com?q x.com#f x.com!", ""]
E.extend("{{ " + repr(address) + "|urlize(" + options + ") }}" for address in ADDRESSES for options in ["", "10, true, '_blank'", "extra_schemes=['tel:', 'ftp://', 'git+ssh://'], rel='b a noopener \"x\"'"])
e("7|urlize", "none|urlize", "missing|urlize", "'www.x.org'|urlize(0)", "'www.x.org'|urlize(-3)", "'www.x.org'|urlize('a')", "'www.x.org'|urlize(target='')", "'www.x.org'|urlize(target='<\"')", "'tel:1'|urlize(extra_schemes=['tel'])", "'tel:1'|urlize(extra_schemes=['t:'])", "'tel:1'|urlize(extra_schemes='tel:')",
  "'tel:1'|urlize(extra_schemes=[1])", "'tel:1'|urlize(extra_schemes=['tel:///'])", "'tel:1'|urlize(extra_schemes=('x-y:', 'tel:'))", "'a'|urlize(rel=5)")
# Tests.
for subject in ["missing", "none", "text", "''", "list", "(1,)", "dict", "range(3)", "n", "x", "yes", "dict.items()", "text.upper", "namespace()", "cycler(1)", "[]|map('upper')"]:
    e(f"{subject} is defined", f"{subject} is none", f"{subject} is string", f"{subject} is iterable", f"{subject} is sequence", f"{subject} is mapping", f"{subject} is number", f"{subject} is callable")
e("n is odd", "n is even", "n is divisibleby 7", "n is divisibleby(2)", "n is divisibleby 0", "x is float", "n is integer", "yes is integer", "yes is boolean", "1 is true", "yes is true", "no is false", "0 is false",
  "text is lower", "'abc' is lower", "'ABC' is upper", "'1' is lower", "1 is eq(1)", "1 is ne 2", "1 is in [1]", "1 is in list", "5 is not in list", "1 is sameas 1", "none is sameas none", "1 is sameas true", "'upper' is filter",
  "'nosuch' is filter", "'odd' is test", "text is nosuch", "n is not odd", "not n is odd", "missing is undefined", "dict.b is defined", "dict.z is defined", "x is odd", "2.0 is even", "1 is gt 0 and 2 is lt 3", "n is number is true", "text is escaped",
  "1 is >= 1" if False else "1 is ge 1", "'a' is in 'abc'", "range is callable", "none is odd")
# Globals.
e("range(5)|list", "range(2, 5)|list", "range(5, 0, -2)|list", "range(0)|list", "range(3)|length", "range(100001)", "range(1, 2, 0)", "range('a')", "dict(a=1)" if False else "{}.get('a', 1)", "namespace(a=1).a", "namespace({'a': 2}, b=3).b", "namespace().z",
  "raise_exception('x')", "cycler('a', 'b').next()", "joiner('-')()", "range(5)[1:3]|list", "range(3) == range(3)", "range(0, 10, 3)[-1]", "range(-3)|length", "range(10)|sum", "range(2.5)")
# Statements.
t("{% for i in list %}{{ i }}{% endfor %}", "{% for i in [] %}x{% else %}none{% endfor %}", "{% for i in missing %}x{% else %}none{% endfor %}", "{% for i in none %}x{% endfor %}", "{% for i in 5 %}x{% endfor %}", "{% for c in 'abc' %}{{ c }}.{% endfor %}", "{% for k in dict %}{{ k }}{% endfor %}",
  "{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in dict|dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for a, b in [[1, 2], (3, 4)] %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in ['xy', 'zw'] %}{{ a }}{{ b }}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
  "{% for i in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}", "{% for i in list %}{{ loop.previtem }}/{{ loop.nextitem }} {% endfor %}", "{% for i in list %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
  "{% for i in list %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}", "{% for i in range(5) if i is odd %}{{ i }}{{ loop.length }}{% endfor %}", "{% for i in range(3) if i > 9 %}x{% else %}e{% endfor %}", "{% for i in list %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
  "{% for i in list %}{% if loop.index == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{% for i in list recursive %}{{ i }}{% endfor %}", "{% for i in nested recursive %}[{% if i is iterable %}{{ loop(i) }}{% else %}{{ i }}{{ loop.depth }}{% endif %}]{% endfor %}", "{% for i in range(2) %}{% for j in range(2) %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
  "{% set x = 1 %}{% for i in list %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=0) %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set ns = {} %}{% set ns.a = 1 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a, b = [1] %}", "{% set x %}a{{ n }}{% endset %}{{ x }}",
  "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | replace('a', 'b') | upper %}abc{% endset %}{{ x }}", "{% if no %}a{% elif yes %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if yes %}{% set y = 1 %}{% endif %}{{ y }}", "{% if missing %}a{% else %}b{% endif %}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
  "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}", "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=1, a=2) }}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(c=2) }}", "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}",
  "{% macro m(a) %}{{ a }}{{ kwargs }}{% endmacro %}{{ m(1, c=2) }}", "{% macro m() %}{{ varargs|length }}{{ kwargs|length }}{% endmacro %}{{ m() }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{% endcall %}", "{% macro m() %}[{{ caller(5) }}]{% endmacro %}{% call(a) m() %}x{{ a }}{% endcall %}",
  "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{{ z }}{% endmacro %}{% set z = 3 %}{{ m() }}", "{% set z = 1 %}{% macro m() %}{% set z = 2 %}{{ z }}{% endmacro %}{{ m() }}{{ z }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m() %}a{% endmacro %}{{ m()|upper }}{{ m() ~ 'b' }}{{ m().upper() }}", "{% macro m() %}{% endmacro %}{{ m.name }}{{ m is callable }}{{ m is string }}",
  "{% filter upper %}abc{{ n }}{% endfilter %}", "{% filter upper|replace('A', 'x') %}abc{% endfilter %}", "{% block a %}x{{ n }}{% endblock %}", "{% raw %}{{ x }}{% endraw %}", "{%- raw -%} {{ x }} {%- endraw -%} y", "{# comment #}a", "a{#- c -#} b", "{% autoescape false %}<{% endautoescape %}", "{% nosuch %}", "{% if yes %}", "{% endif %}", "{{ ", "{{ 1 + }}", "{{ (1 }}", "{{ [1, }}", "{% for %}{% endfor %}", "{% set %}", "{% set true = 1 %}",
  "{{ a b }}", "{{ 'abc }}", "{{ 1 ? 2 }}", "{{ {'a': } }}", "{{ f(a=1, 2) }}", "{% break %}", "{% for i in list %}{{ i }}{% endfor", "a\n{% if yes %}\nb\n{% endif %}\nc\n", "  {% if yes %}  \n  b\n  {% endif %}  \nc", "a {%- if yes -%} b {%- endif -%} c", "a {%+ if yes %} b {% endif +%}\nc", "  {{ n }}  \n  {{- n }}\n{{ n -}}\n  x", "a\n\n{{ n }}\n\nb\n\n", "{{ n }}\n", "  {# c #}\na", "{% set a = 1 -%}\n\n  b", "x{% set a = 1 %}\n\ny", "{%- for i in list -%}\n {{ i }} \n{%- endfor -%}",
  "\r\na\r\n{{ n }}\r\n", "{% if yes -%}\n  a\n{%- endif %}\n", "{{ {'a': {'b': 1}}.a.b }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{- '\n' }}a", "{{ '}}' }}{{ '%}' }}", "{% set l = [1] %}{{ l + [2] }}{{ l }}", "{{ joiner }}" if False else "{% set j = joiner(', ') %}{{ j() }}a{{ j() }}b{{ j() }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
  "{% set g = list|map('string') %}{{ g|list }}{{ g|list }}", "{% set g = list|select %}{{ g|first }}{{ g|list }}", "{% for i in list|map('string') %}{{ i }}{{ loop.length }}{{ loop.last }}{% endfor %}", "{% for x in people %}{% for t in x.tags %}{{ t }}{% endfor %}{{ x.name }}{% endfor %}", "{% for loop in [1] %}{% endfor %}" if False else "{{ loop }}", "{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace(f=1) %}{% macro m() %}{% set ns.f = 2 %}{% endmacro %}{{ m() }}{{ ns.f }}",
  "{% for i in [1,2] %}{% set ns = i %}{% endfor %}{{ ns is defined }}", "{% for i in range(3) %}{{ i }}{{ ',' if not loop.last }}{% endfor %}", "{{ dict['a'][1] }}{{ dict.a.1 }}", "{% if 'b' in dict and dict.b == 1 %}ok{% endif %}", "{% if text.startswith('Hello') and not text.endswith('x') %}ok{% endif %}", "{% if not missing is defined %}ok{% endif %}", "{% if list|length > 2 and list[-1] == 2 %}ok{% endif %}",
  "{% for i in list[::-1] %}{{ i }}{% endfor %}", "{% for i in ''[::-1] %}{{ i }}{% endfor %}x", "{{ 'a' if 1 }}{{ 'b' if 0 }}c", "{% set x = 'a' if yes else 'b' %}{{ x }}", "{{ raise_exception('no ' ~ n) }}", "{% set _ = list|sort %}{{ _ }}", "{% for item in dict.items() %}{{ item[0] }}{{ item[1] }}{% endfor %}", "{% for i in list if i != 3 recursive %}{{ i }}{% endfor %}")

cases = []
for source in E:
    try:
        expected = {"text": env.from_string(source).render(**VARIABLES)}
    except Exception as error:  # noqa: BLE001
        expected = {"error": f"{type(error).__name__}: {error}"[:120]}
    if "0x7" in expected.get("text", "") or "object at" in expected.get("text", "") or "<built-in" in expected.get("text", ""):
        continue  # It prints an address.
    cases.append({"source": source, **expected})
rows = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
variables = json.dumps(VARIABLES, ensure_ascii=True)
Path(__file__).with_name("expressions.json").write_text(f'{{"variables": {variables},\n"cases": [\n{rows}\n]}}\n')
print(len(cases), "cases,", sum("error" in case for case in cases), "fail")
