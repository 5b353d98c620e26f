//! The WGSL filters: their output, the values they reject, and that naga parses the output.

use serde_json::json;
use wgsl_pre::{Error, ErrorKind, Renderer};

fn eval(expression: &str) -> Result<String, Error> {
    let mut renderer = Renderer::new();
    renderer.add_template("t", format!("{{{{ {expression} }}}}"))?;
    let vars = json!({ "max": u64::MAX, "half": 0.5, "list": [1, 2, 3], "word": "abc" });
    renderer.render("t", &vars).map(|text| text.trim_end().to_owned())
}

#[test]
fn literals_are_the_shortest_that_round_trip() {
    for (expression, expected) in [
        ("1|f32", "1.0f"),
        ("-1|f32", "-1.0f"),
        ("0.1|f32", "0.1f"),
        ("half|f32", "0.5f"),
        ("1e-5|f32", "1e-5f"),
        ("16777216|f32", "16777216.0f"),
        ("3.4028234663852886e38|f32", "3.4028235e38f"),
        ("1e-40|f32", "1e-40f"),
        ("0|f32", "0.0f"),
        ("1|f16", "1.0h"),
        ("0.1|f16", "0.1h"),
        ("65504|f16", "65504.0h"),
        ("-0.3333333|f16", "-0.3333h"),
        ("0|f16", "0.0h"),
        ("7|u32", "7u"),
        ("4294967295|u32", "4294967295u"),
        ("(7/1)|u32", "7u"),
        ("-7|i32", "-7i"),
        ("-2147483648|i32", "i32(-2147483648)"),
        ("255|hex", "0xffu"),
        ("255|hex(8)", "0x000000ffu"),
        ("[1, 2]|vec(2, 'u32')", "vec2<u32>(1u, 2u)"),
        ("list|vec(3, 'f32')", "vec3<f32>(1.0f, 2.0f, 3.0f)"),
        ("1|vec(4, 'f32')", "vec4<f32>(1.0f)"),
        ("1|vec(1, 'i32')", "1i"),
        ("[true, false]|vec(2, 'bool')", "vec2<bool>(true, false)"),
        ("'f16'|vec_type(4)", "vec4<f16>"),
        ("'f16'|vec_type(1)", "f16"),
        ("list|array_literal('u32')", "array<u32, 3>(1u, 2u, 3u)"),
        ("list|array_literal('u32', hex=true)", "array<u32, 3>(0x1u, 0x2u, 0x3u)"),
        (
            "[[1, 2], [3, 4]]|array_literal('vec2<i32>')",
            "array<vec2<i32>, 2>(vec2<i32>(1i, 2i), vec2<i32>(3i, 4i))",
        ),
        ("'abc'|ident", "abc"),
        ("32|log2", "5"),
        ("1|log2", "0"),
    ] {
        assert_eq!(eval(expression).as_deref(), Ok(expected), "{expression}");
    }
}

#[test]
fn values_that_cannot_be_written_are_errors() {
    for (expression, expected) in [
        ("word|f32", "filter `f32`: expected a number, found the string \"abc\""),
        ("true|f32", "filter `f32`: expected a number, found `true`"),
        (
            "[1]|array_literal('u32', hex='yes')",
            "filter `array_literal`: expected a boolean, found the string \"yes\"",
        ),
        (
            "(1e300*1e300)|f32",
            "filter `f32`: expected a number from -3.4028234663852886e38 to 3.4028234663852886e38, found `inf`",
        ),
        (
            "1e39|f32",
            "filter `f32`: expected a number from -3.4028234663852886e38 to 3.4028234663852886e38, found `1e39`",
        ),
        ("1e-50|f32", "filter `f32`: expected a number that f32 can distinguish from zero, found `1e-50`"),
        (
            "16777217|f32",
            "filter `f32`: expected an integer that f32 can represent exactly, found `16777217`",
        ),
        (
            "max|f32",
            "filter `f32`: expected an integer that f32 can represent exactly, found `18446744073709551615`",
        ),
        ("65520|f16", "filter `f16`: expected a number from -65504 to 65504, found `65520`"),
        ("-1|u32", "filter `u32`: expected an integer from 0 to 4294967295, found `-1`"),
        ("1.5|u32", "filter `u32`: expected an integer from 0 to 4294967295, found `1.5`"),
        ("max|u32", "filter `u32`: expected an integer from 0 to 4294967295, found `18446744073709551615`"),
        (
            "2147483648|i32",
            "filter `i32`: expected an integer from -2147483648 to 2147483647, found `2147483648`",
        ),
        ("-1|hex", "filter `hex`: expected an integer from 0 to 4294967295, found `-1`"),
        ("[1]|vec(2, 'u32')", "filter `vec`: expected 2 components, found 1 in `[1]`"),
        ("1|vec(5, 'u32')", "filter `vec`: expected 1 to 4 components of a scalar type, found 5"),
        ("1|vec(2, 'vec2<u32>')", "filter `vec`: expected 1 to 4 components of a scalar type, found 2"),
        (
            "1|vec(2, 'f64')",
            "filter `vec`: expected one of the types f32, f16, i32, u32, bool or vecN of them, found \"f64\"",
        ),
        (
            "[]|array_literal('u32')",
            "filter `array_literal`: expected a non-empty list, because WGSL has no empty arrays, found an empty one",
        ),
        ("'ab'|array_literal('u32')", "filter `array_literal`: expected a list, found the string \"ab\""),
        (
            "[1, -2]|array_literal('u32')",
            "filter `array_literal`: expected an integer from 0 to 4294967295, found `-2` at index 1",
        ),
        ("'while'|ident", "filter `ident`: expected a WGSL identifier, found \"while\", which is reserved"),
        ("'1a'|ident", "filter `ident`: expected a WGSL identifier, found \"1a\", which is malformed"),
        ("7|ident", "filter `ident`: expected a WGSL identifier, found `7`"),
        ("33|log2", "filter `log2`: expected a power of two, found `33`"),
        ("0|log2", "filter `log2`: expected a power of two, found `0`"),
    ] {
        let error = eval(expression).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Filter { .. }), "{expression}: {error}");
        assert_eq!(error.kind().to_string(), expected, "{expression}");
        assert_eq!(error.location().map(|at| at.line), Some(1), "{expression}");
    }
}

#[test]
fn an_undefined_name_is_an_error_also_in_front_of_a_filter() {
    assert_eq!(eval("nowhere").unwrap_err().to_string(), "t:1:4: 'nowhere' is undefined");
    let error = eval("nowhere|u32").unwrap_err();
    assert_eq!(
        error.to_string(),
        "t:1:12: filter `u32`: expected an integer from 0 to 4294967295, found an undefined value"
    );
}

#[test]
fn naga_reads_every_literal() {
    let mut renderer = Renderer::new();
    renderer
        .add_template(
            "t",
            "\
enable f16;
const f = {{ f32s | array_literal('f32') }};
const h = {{ f16s | array_literal('f16') }};
const u = {{ u32s | array_literal('u32') }};
const x = {{ u32s | array_literal('u32', hex=true) }};
const i = {{ i32s | array_literal('i32') }};
const v = {{ [i32s, i32s] | array_literal('vec4<i32>') }};
const b = {{ [true, false] | vec(2, 'bool') }};
const long = {{ range(300) | array_literal('u32') }};
fn g(x: {{ 'f32' | vec_type(3) }}) -> vec3<f32> { return x + {{ 0.25 | vec(3, 'f32') }}; }
",
        )
        .unwrap();
    let text = renderer
        .render(
            "t",
            &json!({
                "f32s": [0, 1, -1, 0.1, 1e-5, 1e20, f32::MAX, f32::MIN_POSITIVE, 1e-44],
                "f16s": [0, 1, -1, 0.1, 65504, 6e-8, 1e-4],
                "u32s": [0, 7, u32::MAX],
                "i32s": [0, -7, i32::MAX, i32::MIN],
            }),
        )
        .unwrap();
    let module =
        naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
    naga::valid::Validator::new(
        naga::valid::ValidationFlags::all(),
        naga::valid::Capabilities::SHADER_FLOAT16,
    )
    .validate(&module)
    .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
    assert!(text.lines().all(|line| line.len() <= 110), "{text}");
}
