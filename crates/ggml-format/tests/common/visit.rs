//! Reads a file, accesses everything in it, and asserts the invariants that hold for any bytes.
#![allow(dead_code, reason = "each test file uses a part")]

use ggml_format::{Gguf, GgufError, Imatrix, SplitName, Value};

/// Reads `bytes` as the first bytes of a file of `file_len` bytes.
pub(crate) fn visit(bytes: &[u8], file_len: u64) -> Result<(), GgufError> {
    let gguf = match Gguf::parse(bytes.to_vec().into(), file_len) {
        Ok(gguf) => gguf,
        Err(GgufError::NeedMore { n_byte }) => {
            assert!(n_byte > bytes.len() as u64 && n_byte <= file_len, "asks for bytes that exist");
            return Err(GgufError::NeedMore { n_byte });
        }
        Err(e) => {
            assert!(!e.to_string().is_empty());
            return Err(e);
        }
    };
    for (key, value) in gguf.metadata().iter() {
        assert_eq!(gguf.get(key).map(Value::ty), Some(value.ty()));
        let _ = (gguf.u32(key), gguf.f32(key), gguf.bool(key), gguf.str(key), gguf.vec::<f64>(key));
        for n_layer in [1, u32::MAX as usize] {
            let _ = gguf.per_layer::<u32>(key, n_layer);
        }
        if let (Value::Str(name), Some(split)) = (value, gguf.str(key).ok().and_then(SplitName::parse)) {
            assert_eq!(split.sibling(split.index), name);
        }
        if let Value::Array(array) = value {
            assert_eq!(array.iter().count() as u64, array.len());
        }
    }
    for t in gguf.tensors() {
        assert_eq!(gguf.tensor(&t.name), Some(t));
        assert!(t.offset.checked_add(t.n_byte).is_some_and(|end| end <= file_len));
        assert_eq!(t.ty.row_bytes(t.n_elem()), Some(t.n_byte));
        assert_eq!(t.offset % u64::from(gguf.alignment()), 0);
    }
    Ok(())
}

/// Reads `bytes` as a whole file, and as the beginning of a longer one.
pub(crate) fn any_length(bytes: &[u8]) {
    let _ = visit(bytes, bytes.len() as u64);
    let _ = visit(bytes, bytes.len() as u64 * 2);
}

/// Reads `bytes` as an importance matrix, which is GGUF or a format without a magic number.
pub(crate) fn imatrix(bytes: &[u8]) {
    let imatrix = match Imatrix::parse(bytes.to_vec()) {
        Ok(imatrix) => imatrix,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    assert!(!imatrix.entries.is_empty());
    for (name, entry) in &imatrix.entries {
        let (n_value, n_mat) = (entry.sums().len(), entry.counts().len());
        let means = imatrix.importance(name, n_value / n_mat, n_mat).expect("its own shape");
        assert!(means.is_some_and(|means| means.len() == n_value && means.iter().all(|v| *v >= 0.0)));
        assert!(imatrix.importance(name, n_value + 1, 1).is_err());
        assert!(imatrix.importance(name, usize::MAX, 2).is_err());
    }
    // Names from the older format may be too long for GGUF.
    if let Ok(file) = imatrix.write(Vec::new()) {
        assert_eq!(Imatrix::parse(file).expect("a file that was written"), imatrix);
    }
}
