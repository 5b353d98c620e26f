//! Recipes against plain loops, and reads of any range against one read of the whole.

mod common;

use chaski_checkpoint::{
    Codes, Dtype, Index, MatrixScale, Microscaled, Nvfp4, Order, Packing, Quantized, Recipe, Strides, View,
    VirtualGguf, VirtualSource, VirtualTensor, Zero,
};
use ggml_format::{ByteSource, GgmlType, MemorySource, dequantize};
use proptest::prelude::*;

/// Rows and columns of the matrix in the file.
const ROWS: u64 = 48;
const COLS: u64 = 64;
/// The file begins at an odd place.
const START: u64 = 3;

/// The value at a place: small, of both signs, and exact in bf16.
fn value(row: u64, col: u64) -> f32 {
    ((row * 37 + col * 11) % 255) as f32 - 127.0
}

fn bf16(x: f32) -> [u8; 2] {
    ((x.to_bits() >> 16) as u16).to_le_bytes()
}

/// A file with the matrix in bf16, and bytes to be codes.
fn file() -> Vec<u8> {
    let mut bytes = vec![0xaa; START as usize];
    for r in 0..ROWS {
        (0..COLS).for_each(|c| bytes.extend(bf16(value(r, c))));
    }
    bytes.extend((0..4096u32).map(|i| (i * i / 7 % 119) as u8));
    bytes
}

fn matrix() -> Recipe {
    let view = View { file: 0, offset: START, dtype: Dtype::BF16, n_row: ROWS, n_col: COLS };
    Recipe::plain(view).unwrap()
}

/// Codes behind the matrix.
fn view(skip: u64, dtype: Dtype, n_row: u64, n_col: u64) -> View {
    View { file: 0, offset: START + ROWS * COLS * 2 + skip, dtype, n_row, n_col }
}

fn source(recipe: &Recipe, ty: GgmlType) -> VirtualSource<MemorySource> {
    let tensor = VirtualTensor {
        name: "x.weight".into(),
        ne: vec![recipe.n_col(), recipe.n_row()],
        ty,
        recipe: recipe.clone(),
    };
    // A vector before it, so that it does not begin where data begin.
    let first = Recipe::numbers(vec![1.0, 2.0, 3.0], 3).unwrap();
    let mut gguf = VirtualGguf::default();
    gguf.set("general.architecture", "test");
    gguf.tensors = vec![VirtualTensor::new("first", &[], first).unwrap(), tensor];
    gguf.finish("virtual", vec![MemorySource::new("file", file())]).unwrap()
}

fn whole(source: &VirtualSource<MemorySource>) -> Vec<u8> {
    let mut bytes = vec![0x55; source.len() as usize];
    pollster::block_on(source.read_at(0, &mut bytes)).unwrap();
    bytes
}

/// The tensor's bytes as a reader of GGUF finds them.
fn tensor(recipe: &Recipe, ty: GgmlType) -> Vec<u8> {
    let bytes = whole(&source(recipe, ty));
    let gguf = ggml_format::Gguf::parse(bytes.clone().into(), bytes.len() as u64).unwrap();
    let info = gguf.tensor("x.weight").unwrap();
    assert_eq!((info.ty, info.ne[0], info.ne[1]), (ty, recipe.n_col(), recipe.n_row()));
    bytes[info.offset as usize..][..info.n_byte as usize].to_vec()
}

fn values(recipe: &Recipe) -> Vec<f32> {
    tensor(recipe, GgmlType::F32).as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

/// The values of a matrix by place.
fn by_place(n_row: u64, n_col: u64, f: impl Fn(u64, u64) -> f32) -> Vec<f32> {
    (0..n_row).flat_map(|r| (0..n_col).map(move |c| (r, c))).map(|(r, c)| f(r, c)).collect()
}

#[test]
fn operations_move_and_change_values_as_loops_do() {
    assert_eq!(values(&matrix()), by_place(ROWS, COLS, value));
    // Heads of 12 rows: the halves of a head become neighbours.
    let rope = |r: u64, c| value(r / 12 * 12 + r % 12 / 2 + r % 2 * 6, c);
    assert_eq!(values(&matrix().rope_rows(4).unwrap()), by_place(ROWS, COLS, rope));
    let odd = matrix().rows(Strides::new(1, &[(ROWS / 2, 2)])).unwrap();
    assert_eq!(values(&odd), by_place(ROWS / 2, COLS, |r, c| value(2 * r + 1, c)));
    let cols = matrix().cols(Strides::swapped(1, 4, 8, 2)).unwrap();
    let swapped = |r, c: u64| value(r, c / 8 * 2 + c / 2 % 4 * 16 + c % 2);
    assert_eq!(values(&cols), by_place(ROWS, COLS, swapped));
    let transposed = matrix().transpose(12).unwrap();
    assert_eq!((transposed.n_row(), transposed.n_col(), transposed.native()), (256, 12, GgmlType::BF16));
    assert_eq!(values(&transposed), by_place(256, 12, |r, c| value(r / 64 * 12 + c, r % 64)));
    assert_eq!(values(&transposed.transpose(64).unwrap()), by_place(ROWS, COLS, value));
    let stack = Recipe::concat(vec![odd.clone(), matrix().times(0.5), matrix().plus(1.0).neg_exp()]).unwrap();
    let expected = [
        by_place(ROWS / 2, COLS, |r, c| value(2 * r + 1, c)),
        by_place(ROWS, COLS, |r, c| value(r, c) * 0.5),
        by_place(ROWS, COLS, |r, c| -(value(r, c) + 1.0).exp()),
    ];
    assert_eq!((values(&stack), stack.native()), (expected.concat(), GgmlType::F32));
    let folded = odd.fold(32).unwrap();
    assert_eq!(values(&folded), by_place(ROWS, 32, |r, c| value(r / 2 * 2 + 1, r % 2 * 32 + c)));
    assert_eq!(
        values(&matrix().fold(32).unwrap()),
        by_place(2 * ROWS, 32, |r, c| value(r / 2, r % 2 * 32 + c))
    );
}

#[test]
fn native_bytes_are_those_of_the_file() {
    let file = file();
    let row = |r: u64| &file[(START + r * COLS * 2) as usize..][..COLS as usize * 2];
    assert_eq!(tensor(&matrix(), GgmlType::BF16), (0..ROWS).flat_map(row).copied().collect::<Vec<_>>());
    let rope = matrix().rope_rows(2).unwrap();
    let expected =
        (0..ROWS).flat_map(|r| row(r / 24 * 24 + r % 24 / 2 + r % 2 * 12)).copied().collect::<Vec<_>>();
    assert_eq!(tensor(&rope, GgmlType::BF16), expected);
}

/// A code of 4 bits in the file's bytes behind the matrix: words of 8, the first one lowest.
fn nibble(i: u64) -> u8 {
    file()[(START + ROWS * COLS * 2) as usize + (i / 2) as usize] >> (4 * (i % 2)) & 15
}

#[test]
fn codes_have_the_values_of_their_scales_and_zero_points() {
    let scale = |n_row, n_col| view(2048, Dtype::BF16, n_row, n_col);
    let s = |i: u64| {
        let at = (START + ROWS * COLS * 2 + 2048 + 2 * i) as usize;
        f32::from_bits(u32::from(u16::from_le_bytes([file()[at], file()[at + 1]])) << 16)
    };
    // Rows of 64 codes, groups of 32.
    let rows = Quantized {
        codes: Codes {
            view: view(0, Dtype::I32, 16, 8),
            packing: Packing::AlongRow { bits: 4, order: Order::Plain },
            n_row: 16,
            n_col: 64,
        },
        scale: scale(16, 2),
        row: Index::Groups(1),
        col: Index::Groups(32),
        zero: Zero::Number(8.0),
    };
    let found = values(&Recipe::quantized(rows.clone()).unwrap());
    let expected = by_place(16, 64, |r, c| (f32::from(nibble(r * 64 + c)) - 8.0) * s(r * 2 + c / 32));
    assert_eq!(found, expected);
    // Words of neighbours in a column, and zero points in words of neighbours in a row.
    let columns = Quantized {
        codes: Codes {
            view: view(0, Dtype::I32, 8, 16),
            packing: Packing::DownColumn { bits: 4 },
            n_row: 64,
            n_col: 16,
        },
        scale: scale(2, 16),
        row: Index::Groups(32),
        zero: Zero::Codes {
            codes: Codes {
                view: view(1024, Dtype::I32, 2, 2),
                packing: Packing::AlongRow { bits: 4, order: Order::Awq },
                n_row: 2,
                n_col: 16,
            },
            plus: 1.0,
        },
        col: Index::Groups(1),
    };
    let order = [0, 4, 1, 5, 2, 6, 3, 7];
    let expected = by_place(64, 16, |r, c| {
        let code = nibble((r / 8 * 16 + c) * 8 + r % 8);
        let zero = nibble(2048 + (r / 32 * 2 + c / 8) * 8 + order[c as usize % 8]) + 1;
        (f32::from(code) - f32::from(zero)) * s(r / 32 * 16 + c)
    });
    let columns = Recipe::quantized(columns).unwrap();
    assert_eq!(values(&columns), expected);
    let transposed = columns.transpose(64).unwrap();
    assert_eq!(values(&transposed), by_place(16, 64, |r, c| expected[(c * 16 + r) as usize]));
    // Parts of another shape.
    let mut wrong = rows;
    wrong.col = Index::Groups(16);
    let error = Recipe::quantized(wrong).unwrap_err().to_string();
    assert_eq!(error, "expected scales for 16 x 64 codes, found 16 x 2");
}

#[test]
fn microscaled_codes_become_ggml_blocks() {
    const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let (codes, scales) = (view(0, Dtype::U8, 8, 32), view(1024, Dtype::U8, 8, 2));
    let recipe = Recipe::microscaled(Microscaled { codes: codes.clone(), scales }).unwrap();
    let scale = |i: u64| {
        let byte = file()[(START + ROWS * COLS * 2 + 1024 + i) as usize];
        (f32::from(byte) - 127.0).exp2()
    };
    let expected = by_place(8, 64, |r, c| {
        let code = nibble(r * 64 + c);
        let x = E2M1[usize::from(code % 8)] * scale((r * 64 + c) / 32);
        if code < 8 { x } else { -x }
    });
    assert_eq!(values(&recipe), expected);
    let blocks = tensor(&recipe, GgmlType::MXFP4);
    let mut found = vec![0.0; 8 * 64];
    dequantize(GgmlType::MXFP4, &blocks, &mut found).unwrap();
    assert_eq!(found, expected);
    let wrong = Recipe::microscaled(Microscaled { codes, scales: view(1024, Dtype::U8, 8, 4) });
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "expected bytes of codes and a scale byte per 32 values, found U8 8 x 32 and U8 8 x 4"
    );
}

/// 16 rows of codes with two levels of scales.
fn nvfp4() -> Recipe {
    let (codes, scales) = (view(0, Dtype::U8, 16, 64), view(1024, Dtype::F8_E4M3, 16, 8));
    let matrix = MatrixScale { view: view(2165, Dtype::F32, 1, 1), divides: false };
    Recipe::nvfp4(Nvfp4 { codes, scales, matrix }).unwrap()
}

#[test]
fn factors_stay_with_rows_of_one_matrix_and_with_stacked_ones() {
    let n_factor = |recipe: &Recipe| recipe.factors().map(|factors| (factors.n_row(), factors.n_col()));
    let state = |recipe: &Recipe| (recipe.native(), n_factor(recipe));
    let blocks = |n| (GgmlType::NVFP4, Some((1, n)));
    assert_eq!(state(&nvfp4()), blocks(1));
    assert_eq!(state(&nvfp4().rope_rows(2).unwrap()), blocks(1));
    let halves = [0, 8].map(|row| nvfp4().rows(Strides::slice(row, 8)).unwrap());
    assert_eq!(state(&Recipe::concat(halves.to_vec()).unwrap()), blocks(1));
    let stacked = Recipe::stack(halves.to_vec()).unwrap();
    assert_eq!(state(&stacked), blocks(2));
    let decoded = (GgmlType::F32, None);
    // Rows of several matrices, matrices with other factors, and values that are changed.
    assert_eq!(state(&stacked.clone().rows(Strides::slice(0, 8)).unwrap()), decoded);
    let other = MatrixScale { view: view(2226, Dtype::F32, 1, 1), divides: false };
    let (codes, scales) = (view(0, Dtype::U8, 16, 64), view(1024, Dtype::F8_E4M3, 16, 8));
    let other = Recipe::nvfp4(Nvfp4 { codes, scales, matrix: other }).unwrap();
    assert_eq!(state(&Recipe::concat(vec![nvfp4(), other]).unwrap()), decoded);
    assert_eq!(state(&Recipe::concat(vec![stacked.clone(), stacked.clone()]).unwrap()), decoded);
    assert_eq!(state(&Recipe::stack(vec![stacked.clone(), stacked]).unwrap()), decoded);
    assert_eq!(state(&nvfp4().times(2.0)), decoded);
    assert_eq!(state(&nvfp4().transpose(16).unwrap()), decoded);
    assert_eq!(state(&nvfp4().decoded()), decoded);
    let doubled = values(&nvfp4().times(2.0));
    assert_eq!(doubled, values(&nvfp4()).iter().map(|x| x * 2.0).collect::<Vec<f32>>());
    let transposed = values(&nvfp4().transpose(16).unwrap());
    let plain = values(&nvfp4());
    assert_eq!(transposed, by_place(128, 16, |r, c| plain[(c * 128 + r) as usize]));
}

/// Recipes of all operations, each with the types that its tensor may have.
fn cases() -> Vec<(Recipe, Vec<GgmlType>)> {
    use GgmlType as T;
    let plain = || vec![T::F32, T::BF16, T::F16, T::Q8_0];
    let scales = Recipe::numbers(vec![1.0; (ROWS * COLS / 32) as usize], COLS / 32).unwrap();
    let steps = Recipe::numbers((0..ROWS * COLS).map(|i| (i * i % 16) as f32 - 8.0).collect(), COLS).unwrap();
    vec![
        (matrix(), plain()),
        (matrix().rope_rows(4).unwrap(), plain()),
        (matrix().transpose(12).unwrap(), vec![T::F32, T::BF16]),
        (matrix().transpose(24).unwrap().rows(Strides::new(1, &[(63, 2)])).unwrap(), vec![T::F32, T::BF16]),
        (matrix().cols(Strides::swapped(2, 4, 8, 1)).unwrap(), plain()),
        (Recipe::concat(vec![matrix().times(2.0), matrix()]).unwrap(), plain()),
        (matrix().rows(Strides::slice(5, 40)).unwrap().fold(128).unwrap(), plain()),
        (steps.as_q4_0(scales).unwrap(), vec![T::F32, T::Q4_0, T::Q8_0]),
        (nvfp4(), vec![T::F32, T::NVFP4, T::Q8_0]),
        (Recipe::stack(vec![nvfp4(), nvfp4()]).unwrap(), vec![T::F32, T::NVFP4, T::Q8_0]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_range_is_part_of_the_whole(case in 0..10usize, ty in 0..4usize, start in 0.0..1.0f64, n in 0..700usize) {
        let (recipe, types) = &cases()[case];
        let source = source(recipe, types[ty % types.len()]);
        let whole = whole(&source);
        let start = (start * whole.len() as f64) as usize;
        let n = n.min(whole.len() - start);
        let mut part = vec![0x55; n];
        pollster::block_on(source.read_at(start as u64, &mut part)).unwrap();
        prop_assert_eq!(&part, &whole[start..start + n]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let error = |result: Result<Recipe, chaski_checkpoint::RecipeError>| result.unwrap_err().to_string();
    assert_eq!(error(matrix().rope_rows(5)), "expected rows of 5 heads of even size, found 48 rows");
    assert_eq!(error(matrix().rows(Strides::slice(40, 9))), "expected at least 49 rows, found 48");
    assert!(matrix().rows(Strides::new(u64::MAX, &[(2, 1)])).is_err());
    assert!(matrix().rows(Strides::new(0, &[(u64::MAX, 1), (u64::MAX, 1)])).is_err());
    assert!(matrix().fold(7).is_err() && matrix().fold(0).is_err() && matrix().transpose(5).is_err());
    let deep = matrix().transpose(ROWS).and_then(|r| r.transpose(COLS)).and_then(|r| r.transpose(ROWS));
    assert_eq!(
        error(deep.unwrap().transpose(COLS)),
        "expected at most 3 transpositions within each other, found more"
    );
    let pair = Recipe::concat(vec![matrix(), matrix().fold(32).unwrap()]);
    assert_eq!(error(pair), "expected rows of 64 values, found rows of 32");
    let huge = View { file: 0, offset: 0, dtype: Dtype::U8, n_row: u64::MAX, n_col: 2 };
    assert!(Recipe::plain(huge).is_err());
}

#[test]
fn bad_data_is_an_error_that_names_the_tensor() {
    // A file that is too short cannot be read.
    let view = View { file: 0, offset: START, dtype: Dtype::F32, n_row: 1, n_col: 1 << 20 };
    let source = source(&Recipe::plain(view).unwrap(), GgmlType::F32);
    let mut part = [0; 64];
    let error = pollster::block_on(source.read_at(source.len() - 64, &mut part)).unwrap_err();
    assert_eq!(error.to_string(), "`virtual: tensor `x.weight``: read failed");
    assert!(pollster::block_on(source.read_at(source.len() - 1, &mut part)).is_err());
    let nan = View { file: 0, offset: 0, dtype: Dtype::F8_E4M3, n_row: 1, n_col: 32 };
    let recipe = Recipe::plain(nan).unwrap();
    let tensors = vec![VirtualTensor::new("t", &[], recipe).unwrap()];
    let gguf = VirtualGguf { tensors, ..VirtualGguf::default() };
    let source = gguf.finish("virtual", vec![MemorySource::new("file", vec![0x7f; 32])]).unwrap();
    let error = pollster::block_on(source.read_at(source.len() - 64, &mut part)).unwrap_err();
    let chain = common::chain(&error);
    assert!(chain.ends_with(": expected finite F8_E4M3 values, found NaN (code 0x7f)"), "{chain}");
    // Infinities of bf16 do not become q8_0.
    let infinite = View { file: 0, offset: 0, dtype: Dtype::BF16, n_row: 1, n_col: 32 };
    let recipe = Recipe::plain(infinite).unwrap();
    let tensor = VirtualTensor { name: "t".into(), ne: vec![32], ty: GgmlType::Q8_0, recipe };
    let gguf = VirtualGguf { tensors: vec![tensor], ..VirtualGguf::default() };
    let files = vec![MemorySource::new("file", [0x80, 0x7f].repeat(32))];
    let source = gguf.finish("virtual", files).unwrap();
    let error = pollster::block_on(source.read_at(source.len() - 64, &mut part)).unwrap_err();
    assert!(common::chain(&error).ends_with(": expected finite values, found inf"), "{error}");
}
