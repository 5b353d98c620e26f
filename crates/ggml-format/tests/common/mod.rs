//! Builds valid and invalid GGUF files byte by byte.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod visit;

use std::collections::BTreeMap;

use ggml_format::{Gguf, GgufError, Imatrix, ImatrixEntry};

/// A file under construction; nothing is validated.
#[derive(Clone, Default)]
pub(crate) struct Raw {
    pub(crate) bytes: Vec<u8>,
}

impl Raw {
    pub(crate) fn header(version: u32, n_tensor: i64, n_kv: i64) -> Raw {
        Raw::default().put(b"GGUF").u32(version).i64(n_tensor).i64(n_kv)
    }

    pub(crate) fn put(mut self, bytes: &[u8]) -> Raw {
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn u8(self, v: u8) -> Raw {
        self.put(&[v])
    }

    pub(crate) fn u16(self, v: u16) -> Raw {
        self.put(&v.to_le_bytes())
    }

    pub(crate) fn u32(self, v: u32) -> Raw {
        self.put(&v.to_le_bytes())
    }

    pub(crate) fn f32(self, v: f32) -> Raw {
        self.put(&v.to_le_bytes())
    }

    pub(crate) fn u64(self, v: u64) -> Raw {
        self.put(&v.to_le_bytes())
    }

    pub(crate) fn i64(self, v: i64) -> Raw {
        self.put(&v.to_le_bytes())
    }

    pub(crate) fn str(self, text: &str) -> Raw {
        self.u64(text.len() as u64).put(text.as_bytes())
    }

    pub(crate) fn kv_u32(self, key: &str, v: u32) -> Raw {
        self.str(key).u32(4).u32(v)
    }

    pub(crate) fn tensor(self, name: &str, ne: &[i64], ty: u32, offset: u64) -> Raw {
        let raw = self.str(name).u32(ne.len() as u32);
        ne.iter().fold(raw, |raw, &n| raw.i64(n)).u32(ty).u64(offset)
    }

    pub(crate) fn pad(mut self, alignment: usize) -> Raw {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        self
    }

    pub(crate) fn zeros(mut self, n: usize) -> Raw {
        self.bytes.resize(self.bytes.len() + n, 0);
        self
    }

    pub(crate) fn parse(&self) -> Result<Gguf, GgufError> {
        Gguf::parse(self.bytes.clone().into(), self.bytes.len() as u64)
    }

    pub(crate) fn error(&self) -> String {
        match self.parse() {
            Ok(_) => panic!("the file was accepted"),
            Err(e) => e.to_string(),
        }
    }
}

/// A small file with keys of all types and tensors of several.
pub(crate) fn rich() -> Vec<u8> {
    use ggml_format::{GgmlType, GgufWriter};
    let mut writer = GgufWriter::new();
    fill(&mut writer).expect("the keys are fine");
    writer.tensor("token_embd.weight", &[64, 3], GgmlType::Q8_0).unwrap();
    writer.tensor("blk.0.ffn_up.weight", &[256, 2, 2], GgmlType::Q4_K).unwrap();
    writer.tensor("blk.0.attn_norm.weight", &[5], GgmlType::F32).unwrap();
    writer.tensor("empty", &[0, 4], GgmlType::F16).unwrap();
    let mut data = writer.begin(Vec::new()).unwrap();
    let mut byte = 0u8;
    while let Some((name, n_left)) = data.next().map(|(name, n)| (name.to_owned(), n)) {
        let chunk: Vec<u8> = (0..n_left.min(50)).map(|i| byte.wrapping_add(i as u8)).collect();
        data.write(&name, &chunk).unwrap();
        byte = byte.wrapping_add(50);
    }
    data.finish().unwrap()
}

fn fill(writer: &mut ggml_format::GgufWriter) -> Result<(), ggml_format::WriteError> {
    writer
        .set("general.architecture", "llama")?
        .set("general.alignment", 64u32)?
        .set("a.u8", 200u8)?
        .set("a.i8", -3i8)?
        .set("a.u16", 60000u16)?
        .set("a.i16", -30000i16)?
        .set("a.u32", 4_000_000_000u32)?
        .set("a.i32", -2_000_000_000i32)?
        .set("a.u64", u64::MAX)?
        .set("a.i64", i64::MIN)?
        .set("a.f32", 0.1f32)?
        .set("a.f64", 0.1f64)?
        .set("a.bool", true)?
        .set("a.text", "naïve ☃")?
        .set("a.empty", "")?
        .set("a.tokens", vec!["<s>", "", "é", "▁the"])?
        .set("a.scores", vec![0.5f32, -1.0, f32::INFINITY])?
        .set("a.types", vec![1i32, -2, 3])?
        .set("a.flags", vec![true, false])?
        .set("a.none", Vec::<u64>::new())?;
    Ok(())
}

/// An importance matrix of a dense layer and of experts, of which one had no activations.
pub(crate) fn sample_imatrix() -> Imatrix {
    let entry = |sums: &[f32], counts: &[f32]| ImatrixEntry::new("", sums.to_vec(), counts.to_vec()).unwrap();
    Imatrix {
        entries: BTreeMap::from([
            ("blk.0.attn_q.weight".to_owned(), entry(&[2.0, 0.0, 8.0], &[4.0])),
            ("blk.0.ffn_up_exps.weight".to_owned(), entry(&[3.0, 6.0, 0.0, 0.0], &[3.0, 0.0])),
        ]),
        datasets: vec!["a.txt".to_owned(), "b.txt".to_owned()],
        n_chunk: 7,
        chunk_len: 512,
    }
}
