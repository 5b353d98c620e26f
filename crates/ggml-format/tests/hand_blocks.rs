//! Blocks computed by hand from the formulas, and the rules of the type table.

use ggml_format::blocks::F16;
use ggml_format::types::{float::ValueBf16, mxfp4::e8m0_half, nvfp4::ue4m3_half};
use ggml_format::{ConvertError, GgmlType, TYPES, dequantize, quantize};

/// 1.0, 2.0 and 0.5 as half floats.
const ONE: [u8; 2] = [0x00, 0x3c];
const TWO: [u8; 2] = [0x00, 0x40];
const HALF: [u8; 2] = [0x00, 0x38];

fn values(ty: GgmlType, parts: &[&[u8]]) -> Vec<f32> {
    let bytes = parts.concat();
    let mut y = vec![f32::NAN; bytes.len() / ty.block_bytes() * ty.block_len()];
    dequantize(ty, &bytes, &mut y).unwrap();
    y
}

#[test]
fn rows_of_the_table_stand_where_their_variants_say() {
    for (i, info) in TYPES.iter().enumerate() {
        assert_eq!(info.ty as usize, i, "{}", info.name);
        assert_eq!(GgmlType::from_id(info.id), Some(info.ty));
        assert_eq!(GgmlType::from_name(info.name), Some(info.ty));
        assert_eq!(GgmlType::from_name(&info.name.to_uppercase()), Some(info.ty));
        assert_eq!(format!("{:?}", info.ty), info.name.to_uppercase());
        assert_eq!(format!("{:>8}", info.ty), format!("{:>8}", info.name));
        assert!(i == 0 || TYPES[i - 1].id < info.id);
    }
    for removed in [4, 5, 31, 32, 33, 36, 37, 38, u32::MAX] {
        assert_eq!(GgmlType::from_id(removed), None);
    }
}

#[test]
fn row_bytes_counts_whole_blocks() {
    assert_eq!(GgmlType::Q4_K.row_bytes(512), Some(288));
    assert_eq!(GgmlType::Q4_K.row_bytes(0), Some(0));
    assert_eq!(GgmlType::Q4_K.row_bytes(128), None);
    assert_eq!(GgmlType::F64.row_bytes(u64::MAX), None);
    assert_eq!(GgmlType::Q4_K.bits_per_weight(), 4.5);
}

#[test]
fn q4_0_by_hand() {
    let mut qs = [0x88; 16]; // code 8 is zero
    qs[0] = 0x0f; // value 0: 15 - 8 = 7, value 16: 0 - 8 = -8
    qs[15] = 0x98; // value 31: 9 - 8 = 1
    let y = values(GgmlType::Q4_0, &[&TWO, &qs]);
    assert_eq!((y[0], y[16], y[31]), (14.0, -16.0, 2.0));
    assert_eq!(y.iter().filter(|&&y| y == 0.0).count(), 29);
}

#[test]
fn q5_1_by_hand() {
    let mut qs = [0; 16];
    qs[3] = 0x21; // low bits: value 3 is 1, value 19 is 2
    let qh = 1u32 << 19 | 1 << 31;
    let y = values(GgmlType::Q5_1, &[&HALF, &ONE, &qh.to_le_bytes(), &qs]);
    assert_eq!((y[3], y[19], y[31], y[0]), (1.5, (2.0 + 16.0) * 0.5 + 1.0, 9.0, 1.0));
}

#[test]
fn q8_1_and_q8_k_by_hand() {
    let mut x = vec![0.0f32; 256];
    x[0] = 127.0;
    x[1] = -2.0;
    x[17] = 3.4;
    let mut out = vec![0; 36 * 8];
    quantize(GgmlType::Q8_1, &x, 256, None, &mut out).unwrap();
    assert_eq!(out[..4], [ONE, F16::from_f32(128.0).0].concat()); // s = 127 - 2 + 3
    assert_eq!((out[4], out[5] as i8, out[21]), (127, -2, 3));

    let mut out = vec![0; 292];
    quantize(GgmlType::Q8_K, &x, 256, None, &mut out).unwrap();
    assert_eq!(out[..4], (-1.0f32).to_le_bytes()); // the extreme value gets -127
    assert_eq!((out[4] as i8, out[5], out[21] as i8), (-127, 2, -3));
    assert_eq!(out[260..264], [(-125i16).to_le_bytes(), (-3i16).to_le_bytes()].concat());
    let y = values(GgmlType::Q8_K, &[&out]);
    assert_eq!((y[0], y[1], y[17]), (127.0, -2.0, 3.0));
}

#[test]
fn q4_k_by_hand() {
    let mut scales = [0; 12];
    scales[0] = 3 | (0b10 << 6); // scale 0 is 3; high bits of scale 4 are 2
    scales[4] = 5; // minimum 0 is 5
    scales[8] = 0x71; // scale 4 is 1 + 2 * 16 = 33, minimum 4 is 7
    let mut qs = [0; 128];
    qs[2] = 0x09; // value 2 is 9
    qs[64 + 1] = 0x0f; // value 129 is 15, in group 4
    let y = values(GgmlType::Q4_K, &[&TWO, &HALF, &scales, &qs]);
    assert_eq!(y[2], 2.0 * 3.0 * 9.0 - 0.5 * 5.0);
    assert_eq!(y[3], -2.5);
    assert_eq!(y[129], 2.0 * 33.0 * 15.0 - 0.5 * 7.0);
    assert_eq!(y[40], 0.0); // group 1 has neither scale nor minimum
}

#[test]
fn q6_k_by_hand() {
    let (mut ql, mut qh, mut scales) = ([0; 128], [0; 64], [0u8; 16]);
    scales[0] = 1;
    scales[15] = -2i8 as u8;
    ql[0] = 0x05;
    qh[0] = 0x03; // value 0: 5 + 3 * 16 - 32 = 21
    ql[127] = 0xf0;
    qh[63] = 0x40; // value 255: 15 + 1 * 16 - 32 = -1
    let y = values(GgmlType::Q6_K, &[&ql, &qh, &scales, &HALF]);
    assert_eq!((y[0], y[1], y[255], y[16]), (10.5, -16.0, 1.0, 0.0));
}

#[test]
fn q1_0_and_q2_0_by_hand() {
    let mut qs = [0; 16];
    qs[1] = 0b0000_0100;
    let y = values(GgmlType::Q1_0, &[&TWO, &qs]);
    assert_eq!((y[10], y[0], y.len()), (2.0, -2.0, 128));
    qs[1] = 0b1110_0100; // codes 0, 1, 2, 3
    let y = values(GgmlType::Q2_0, &[&TWO, &qs]);
    assert_eq!(y[4..8], [-2.0, 0.0, 2.0, 4.0]);
}

#[test]
fn mxfp4_by_hand() {
    let mut qs = [0; 16];
    qs[0] = 0x97; // value 0: 6, value 16: -0.5
    let y = values(GgmlType::MXFP4, &[&[128], &qs]); // scale 2
    assert_eq!((y[0], y[16], y[1]), (12.0, -1.0, 0.0));
    assert_eq!(e8m0_half(0), (-128f32).exp2());
    assert_eq!(e8m0_half(1), (-127f32).exp2());
    assert_eq!(e8m0_half(2), (-126f32).exp2());
    assert_eq!(e8m0_half(255), 127f32.exp2());
}

#[test]
fn ue4m3_scales_by_hand() {
    assert_eq!(ue4m3_half(0), 0.0);
    assert_eq!(ue4m3_half(0x7f), 0.0);
    assert_eq!(ue4m3_half(0x38), 0.5); // 1.0
    assert_eq!(ue4m3_half(0x7e), 224.0); // 448
    assert_eq!(ue4m3_half(1), (-10f32).exp2());
}

#[test]
fn bf16_is_rounded_to_even_and_keeps_nan() {
    let round = |bits: u32| u16::from_le_bytes(ValueBf16::from_f32(f32::from_bits(bits)).0);
    assert_eq!(round(0x3f80_8000), 0x3f80);
    assert_eq!(round(0x3f81_8000), 0x3f82);
    assert_eq!(round(0x3f80_8001), 0x3f81);
    assert_eq!(round(0x7f7f_ffff), 0x7f80);
    assert_eq!(round(0x7f80_0000), 0x7f80);
    assert_eq!(round(0x7f80_0001), 0x7fc0);
    assert_eq!(round(0xff80_0001), 0xffc0);
}

#[test]
fn half_floats_keep_subnormal_numbers() {
    assert_eq!(F16([1, 0]).to_f32(), (-24f32).exp2());
    assert_eq!(F16::from_f32((-24f32).exp2()).0, [1, 0]);
    assert_eq!(F16::from_f32(65520.0).0, [0x00, 0x7c]);
    assert!(!F16([0x00, 0x7c]).is_finite());
    assert!(!F16([0x01, 0xfc]).is_finite());
    assert!(F16([0xff, 0x7b]).is_finite());
}

#[test]
fn integers_are_twos_complement() {
    assert_eq!(values(GgmlType::I8, &[&[0xff, 0x80]]), [-1.0, -128.0]);
    assert_eq!(values(GgmlType::I16, &[&(-300i16).to_le_bytes()]), [-300.0]);
    assert_eq!(values(GgmlType::I32, &[&70000i32.to_le_bytes()]), [70000.0]);
    assert_eq!(values(GgmlType::I64, &[&(1i64 << 40).to_le_bytes()]), [1.0995116e12]);
    assert_eq!(values(GgmlType::F64, &[&0.25f64.to_le_bytes()]), [0.25]);
}

#[test]
fn infinite_scales_are_found() {
    let inf = [0x00, 0x7c];
    let mut bytes = [0; 18 * 3];
    bytes[36..38].copy_from_slice(&inf);
    assert_eq!((GgmlType::Q4_0.info().invalid_block)(&bytes), Some(2));
    assert_eq!((GgmlType::Q4_0.info().invalid_block)(&bytes[..36]), None);
    // iq1_m stores its scale in the top bits of four words: 0x7c00 is 0, 0, c, 7 starting with the first.
    let mut bytes = [0; 56];
    bytes[48 + 5] = 0xc0;
    bytes[48 + 7] = 0x70;
    assert_eq!((GgmlType::IQ1_M.info().invalid_block)(&bytes), Some(0));
    let mut bytes = [0; 17];
    bytes[0] = 255;
    assert_eq!((GgmlType::MXFP4.info().invalid_block)(&bytes), Some(0));
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let ty = GgmlType::Q4_0;
    let mut y = [0.0; 32];
    let mut out = [0; 18];
    assert_eq!(dequantize(ty, &[0; 17], &mut y), Err(ConvertError::Bytes { ty, found: 17 }));
    assert_eq!(dequantize(ty, &[0; 36], &mut y), Err(ConvertError::Values { ty, expected: 64, found: 32 }));
    assert_eq!(quantize(ty, &y, 16, None, &mut out), Err(ConvertError::RowLength { ty, found: 16 }));
    assert_eq!(quantize(ty, &y, 0, None, &mut out), Err(ConvertError::RowLength { ty, found: 0 }));
    assert_eq!(
        quantize(ty, &y, 64, None, &mut out),
        Err(ConvertError::Rows { ty, n_per_row: 64, found: 32 })
    );
    assert_eq!(
        quantize(ty, &y, 32, None, &mut out[..17]),
        Err(ConvertError::Room { ty, expected: 18, found: 17 })
    );
    assert_eq!(
        quantize(ty, &y, 32, Some(&[1.0]), &mut out),
        Err(ConvertError::Importance { ty, expected: 32, found: 1 })
    );
    let error = quantize(GgmlType::I8, &y, 32, None, &mut out).unwrap_err();
    assert_eq!(error.to_string(), "i8: quantisation to this type is not supported");
}
