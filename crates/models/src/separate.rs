//! Files with one tensor per expert, like early ones of Mixtral: `blk.0.ffn_gate.3.weight`.
//!
//! To the graph they are the fused matrices, `blk.0.ffn_gate_exps.weight`; reading maps bytes to the expert's tensor.

use ggml_format::{ByteSource, ModelFile, SourceError, TensorInfo};

use crate::error::ModelError;

/// The name of an expert's tensor, if `all` names a fused one.
fn name_of(all: &str, expert: u32) -> Option<String> {
    let stem = all.strip_suffix("_exps.weight")?;
    Some(format!("{stem}.{expert}.weight"))
}

/// The name of the fused tensor, if `one` names an expert's.
pub(crate) fn all_of(one: &str) -> Option<String> {
    let (stem, expert) = one.strip_suffix(".weight")?.rsplit_once('.')?;
    let is_expert = stem.contains(".ffn_") && expert.parse::<u32>().is_ok();
    is_expert.then(|| format!("{stem}_exps.weight"))
}

/// The first single-expert tensor in the file.
pub(crate) fn first_of<'a>(
    all: &str,
    n_expert: u32,
    tensor: impl Fn(&str) -> Option<&'a TensorInfo>,
) -> Option<&'a TensorInfo> {
    (0..n_expert).find_map(|e| tensor(&name_of(all, e)?))
}

/// The experts' tensors, all of the type of the first.
///
/// # Errors
/// [`ModelError::NoTensor`] for the first missing one, [`ModelError::Unsupported`] for a different type.
pub(crate) fn each<'a>(
    all: &str,
    n_expert: u32,
    tensor: impl Fn(&str) -> Option<&'a TensorInfo>,
) -> Result<Vec<&'a TensorInfo>, ModelError> {
    let mut found: Vec<&TensorInfo> = Vec::new();
    for expert in 0..n_expert {
        let name = name_of(all, expert).unwrap_or_else(|| all.to_owned());
        let t = tensor(&name).ok_or(ModelError::NoTensor { tensor: name })?;
        if let Some(first) = found.first().filter(|first| first.ty != t.ty) {
            let what = format!("the tensor `{}` in {} beside `{}` in {}", t.name, t.ty, first.name, first.ty);
            return Err(ModelError::Unsupported { what });
        }
        found.push(t);
    }
    Ok(found)
}

/// Reads bytes of the fused matrices from `offset`; false if the file has none by this name.
///
/// # Errors
/// As [`ModelFile::read_tensor`].
pub(crate) async fn read<S: ByteSource>(
    file: &ModelFile<S>,
    all: &str,
    offset: u64,
    buf: &mut [u8],
) -> Result<bool, SourceError> {
    let find = |expert: u32| name_of(all, expert).and_then(|name| file.tensor(&name));
    let Some(n_byte) = find(0).map(|t| t.n_byte).filter(|n| *n > 0) else { return Ok(false) };
    let mut done = 0;
    while done < buf.len() {
        let at = offset + done as u64;
        let (expert, skip) = (at / n_byte, at % n_byte);
        let Some(t) = find(expert as u32) else { return Ok(false) };
        let n = ((n_byte - skip) as usize).min(buf.len() - done);
        file.read_tensor(t, skip, &mut buf[done..done + n]).await?;
        done += n;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use ggml_format::GgmlType::{self, Q4_K, Q8_0};

    use super::*;

    fn tensor(name: &str, ty: GgmlType) -> TensorInfo {
        TensorInfo { name: name.into(), ne: [256, 4, 1, 1], n_dims: 2, ty, offset: 0, n_byte: 0, shard: 0 }
    }

    #[test]
    fn experts_have_one_type() {
        let all = [
            tensor("blk.0.ffn_up.0.weight", Q4_K),
            tensor("blk.0.ffn_up.1.weight", Q4_K),
            tensor("blk.0.ffn_up.2.weight", Q8_0),
        ];
        let find = |name: &str| all.iter().find(|t| t.name == name);
        let name = "blk.0.ffn_up_exps.weight";
        assert_eq!(each(name, 2, find).expect("two of a type").len(), 2);
        let e = each(name, 3, find).expect_err("two types").to_string();
        let both = "`blk.0.ffn_up.2.weight` in q8_0 beside `blk.0.ffn_up.0.weight` in q4_K";
        assert!(e.contains(both), "{e}");
        assert_eq!(first_of(name, 3, find).map(|t| t.name.as_str()), Some("blk.0.ffn_up.0.weight"));
        assert!(first_of("blk.1.ffn_up_exps.weight", 3, find).is_none());
    }

    #[test]
    fn names_of_one_expert_and_of_all_belong_together() {
        let all = "blk.7.ffn_down_exps.weight";
        assert_eq!(name_of(all, 12).as_deref(), Some("blk.7.ffn_down.12.weight"));
        assert_eq!(all_of("blk.7.ffn_down.12.weight").as_deref(), Some(all));
        for other in ["blk.7.ffn_down.weight", "blk.7.weight", "blk.7.ffn_down.x.weight", "blk.7.ffn_down.1"]
        {
            assert_eq!(all_of(other), None, "{other}");
        }
        assert_eq!(name_of("blk.7.ffn_down.weight", 0), None);
    }
}
