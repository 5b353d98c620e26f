//! Models without weights: files with real metadata and zeros that are not stored.

use chaski_graph::Graph;
use chaski_models::Model;
use ggml_format::{ByteSource, GgufWriter, SourceError};

struct Hollow {
    head: Vec<u8>,
    len: u64,
}

impl ByteSource for Hollow {
    fn name(&self) -> &str {
        "hollow.gguf"
    }

    fn len(&self) -> u64 {
        self.len
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(self.name(), self.len, offset, buf.len() as u64)?;
        buf.fill(0);
        let rest = self.head.get(offset as usize..).unwrap_or(&[]);
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(())
    }
}

/// The graph of a file with this header and `n_byte` bytes of weights.
pub(crate) fn graph(head: GgufWriter, n_byte: u64, n_ctx: u32) -> Graph {
    let mut bytes = Vec::new();
    drop(head.begin(&mut bytes).expect("a head"));
    let source = Hollow { len: bytes.len() as u64 + n_byte, head: bytes };
    pollster::block_on(async {
        let none = |name: &str| {
            Err(SourceError::Other { name: name.to_owned(), source: "there is one file".into() })
        };
        let model = Model::open(source, none).await.expect("a model");
        model.graph(n_ctx).await.expect("a graph")
    })
}
