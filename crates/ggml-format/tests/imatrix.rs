//! Importance matrices in both formats, whole and damaged.

mod common;

use common::{Raw, sample_imatrix};
use ggml_format::{GgmlType, GgufWriter, Imatrix, ImatrixError};

/// One entry of two values in eight calls, then calls and the dataset.
fn legacy() -> Vec<u8> {
    let entry = Raw::default().u32(1).u32(8).put(b"a.weight").u32(4).u32(2).f32(2.0).f32(6.0);
    entry.u32(9).u32(5).put(b"c.txt").bytes
}

#[test]
fn what_is_written_is_read_again() {
    let file = sample_imatrix().write(Vec::new()).unwrap();
    assert_eq!(Imatrix::parse(file).unwrap(), sample_imatrix());
}

#[test]
fn nothing_is_not_written() {
    let mut out = Vec::new();
    let error = Imatrix::default().write(&mut out).unwrap_err();
    assert!(matches!(error, ImatrixError::Empty), "{error}");
    assert!(out.is_empty());
}

#[test]
fn importance_is_the_mean_square_of_each_column() {
    let imatrix = sample_imatrix();
    let found = imatrix.importance("blk.0.attn_q.weight", 3, 1).unwrap();
    assert_eq!(found, Some(vec![0.5, 0.0, 2.0]));
    // The second expert had no activations.
    let found = imatrix.importance("blk.0.ffn_up_exps.weight", 2, 2).unwrap();
    assert_eq!(found, Some(vec![1.0, 2.0, 1.0, 1.0]));
    assert_eq!(imatrix.importance("output.weight", 2, 2).unwrap(), None);
    let error = imatrix.importance("blk.0.attn_q.weight", 4, 1).unwrap_err().to_string();
    let expected =
        "tensor `blk.0.attn_q.weight`: expected importance for 4 columns of 1 matrices, found 3 values";
    assert_eq!(error, expected);
}

#[test]
fn the_old_format_is_read_with_its_call_counts() {
    let imatrix = Imatrix::parse(legacy()).unwrap();
    assert_eq!(imatrix.importance("a.weight", 2, 1).unwrap(), Some(vec![0.5, 1.5]));
    // There is one count for all experts.
    assert_eq!(imatrix.importance("a.weight", 1, 2).unwrap(), Some(vec![0.5, 1.5]));
    assert_eq!((imatrix.n_chunk, imatrix.datasets), (9, vec!["c.txt".to_owned()]));
    // Older files end after the entries.
    let n = legacy().len();
    let imatrix = Imatrix::parse(legacy()[..n - 13].to_vec()).unwrap();
    assert_eq!((imatrix.n_chunk, imatrix.datasets.len()), (0, 0));
}

#[test]
fn cut_and_damaged_files_are_errors() {
    for (file, n_optional) in [(sample_imatrix().write(Vec::new()).unwrap(), 0), (legacy(), 13)] {
        for n in 0..file.len() - n_optional {
            // The padding after the last tensor carries no information.
            if file.len() - n > 32 || n_optional > 0 {
                assert!(Imatrix::parse(file[..n].to_vec()).is_err(), "{n} bytes of {}", file.len());
            }
        }
        for i in 0..file.len() {
            let mut file = file.clone();
            file[i] ^= 0xff;
            // An error or different values, never a panic.
            let _ = Imatrix::parse(file);
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |bytes: Vec<u8>| Imatrix::parse(bytes).unwrap_err().to_string();
    let mut huge = legacy();
    huge[20..24].copy_from_slice(&i32::MAX.to_le_bytes());
    assert_eq!(
        error(huge),
        "values of entry 0 at byte 24: expected 8589934588 bytes, found the end of the file after 21"
    );
    let mut negative = legacy();
    negative[4..8].copy_from_slice(&(-1i32).to_le_bytes());
    assert_eq!(
        error(negative),
        "length of the name of entry 0 at byte 4: expected a positive number, found -1"
    );
    let mut nan = legacy();
    nan[24..28].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(error(nan), "entry `a.weight`, value 0: expected a finite, non-negative number, found NaN");

    let mut head = GgufWriter::new();
    head.set("general.type", "model").unwrap();
    let file = head.begin(Vec::new()).unwrap().finish().unwrap();
    assert_eq!(error(file), "key `general.type`: expected `imatrix`, found model");
    let mut head = GgufWriter::new();
    head.set("general.type", "imatrix").unwrap();
    let file = head.begin(Vec::new()).unwrap().finish().unwrap();
    assert_eq!(error(file), "expected the sums of at least one tensor, found none");
    let mut head = GgufWriter::new();
    head.set("general.type", "imatrix").unwrap();
    head.tensor("a.in_sum2", &[1, 1], GgmlType::F32).unwrap();
    let mut data = head.begin(Vec::new()).unwrap();
    data.write("a.in_sum2", &[0; 4]).unwrap();
    assert_eq!(error(data.finish().unwrap()), "entry `a`: expected a tensor `a.counts`, found none");
}
