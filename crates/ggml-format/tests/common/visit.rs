//! Reads a file, accesses everything in it, and asserts the invariants that hold for any bytes.

use ggml_format::{Gguf, GgufError, Imatrix, SplitName, Value};

/// Reads `bytes` as the first bytes of a file of `file_len` bytes.
pub(crate) fn visit(bytes: &[u8], file_len: u64) -> Result<(), GgufError> {
    // Importance matrices are GGUF or a format without a magic number.
    if let Ok(imatrix) = Imatrix::parse(bytes.to_vec()) {
        assert!(!imatrix.entries.is_empty());
    }
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
