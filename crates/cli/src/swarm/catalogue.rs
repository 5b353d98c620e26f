//! The model as a hub hands it out: its skeleton, the bytes of experts, and their digests.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Mutex;

use anyhow::{Context as _, ensure};
use chaski::experts::{ExpertLayer, ExpertPiece, Graph, Tensors as _};
use chaski::gguf::GgufWriter;
use chaski::source::OpenModel;
use chaski_swarm::{LayerShape, ModelShape, Unit};
use chaski_wire::{Assign, Digest, Hex, TensorParts};
use sha2::{Digest as _, Sha256};

/// Path of the skeleton at a hub.
pub(crate) const SKELETON: &str = "/swarm/skeleton";
/// Path of tensors at a hub; the name follows.
pub(crate) const TENSOR: &str = "/swarm/tensor/";
/// Tensors up to this length, in bytes, are part of the skeleton: graphs are built from some of them.
pub(crate) const SMALL: u64 = 4096;
/// Context of the graph, on which the parts of experts do not depend.
const N_CTX: u32 = 1;
/// Pieces after which an assignment goes on in another message: about 200 bytes each, within 1 MiB.
const PIECES: usize = 3000;

/// The model of a hub.
pub(crate) struct Catalogue {
    model: OpenModel,
    graph: Graph,
    layers: Vec<ExpertLayer>,
    shape: ModelShape,
    skeleton: Vec<u8>,
    digest: Digest,
    /// Digests of pieces by tensor and offset, each computed once.
    digests: Mutex<HashMap<(String, u64), Digest>>,
}

impl Catalogue {
    /// Reads the header of a model, and plans units of `block` experts.
    ///
    /// # Errors
    /// A model without experts that can be computed elsewhere, or one that cannot be read.
    pub(crate) fn new(model: OpenModel, block: u16) -> anyhow::Result<Catalogue> {
        let graph = pollster::block_on(model.graph(N_CTX))?;
        let layers = graph.experts();
        ensure!(!layers.is_empty(), "the model has no experts that other machines could compute");
        let shape = shape_of(&graph, &layers, block)?;
        let skeleton = skeleton(&model)?;
        let digest = Hex(Sha256::digest(&skeleton).into());
        Ok(Catalogue { model, graph, layers, shape, skeleton, digest, digests: Mutex::default() })
    }

    /// Experts of the model, in units.
    pub(crate) fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// The graph.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The model, whose tensors are read.
    pub(crate) fn model(&self) -> &OpenModel {
        &self.model
    }

    /// The header of the model without its tokenizer, then the data of small tensors; and their digest.
    pub(crate) fn skeleton(&self) -> (&[u8], Digest) {
        (&self.skeleton, self.digest)
    }

    fn pieces(&self, layer: u16, expert: u16) -> Option<Vec<ExpertPiece>> {
        let layer = self.layers.iter().find(|l| l.layer == layer)?;
        (u32::from(expert) < layer.n_expert).then(|| layer.pieces(&self.graph, expert.into()))
    }

    /// ASSIGN messages for units, with the places and digests of the weights of those that are not `known`, which are
    /// known from then on. Reads and hashes weights that were not asked for before.
    ///
    /// # Errors
    /// Bytes that cannot be read.
    pub(crate) fn assignment(
        &self,
        epoch: u32,
        units: &[Unit],
        known: &mut BTreeSet<Unit>,
    ) -> anyhow::Result<Vec<Assign>> {
        assignment(&self.shape, epoch, units, known, |unit, experts, message| {
            for expert in experts {
                for piece in self.pieces(unit.layer, *expert).unwrap_or_default() {
                    let described = self.described(piece, &mut message.files)?;
                    message.tensors.push(described);
                }
            }
            Ok(())
        })
    }

    /// A piece with its digest. One part each: no rule says that the parts of a tensor are equally far apart.
    fn described(&self, piece: ExpertPiece, files: &mut Vec<String>) -> anyhow::Result<TensorParts> {
        let sha256 = vec![self.digest_of(&piece)?];
        let file = file_of(files, format!("{TENSOR}{}", piece.tensor))?;
        let ExpertPiece { tensor: name, offset, n_byte: length, .. } = piece;
        Ok(TensorParts { name, file, offset, stride: 0, length, parts: vec![0], sha256 })
    }

    fn digest_of(&self, piece: &ExpertPiece) -> anyhow::Result<Digest> {
        let key = (piece.tensor.clone(), piece.offset);
        if let Some(known) = self.digests.lock().expect("nobody panics with it").get(&key) {
            return Ok(*known);
        }
        let bytes = self.read(&piece.tensor, piece.offset, piece.n_byte)?;
        let digest = Hex(Sha256::digest(&bytes).into());
        self.digests.lock().expect("nobody panics with it").insert(key, digest);
        Ok(digest)
    }

    /// Bytes of a tensor.
    ///
    /// # Errors
    /// An unknown tensor, or bytes that cannot be read.
    pub(crate) fn read(&self, tensor: &str, offset: u64, n_byte: u64) -> anyhow::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(n_byte)?];
        read(&self.model, tensor, offset, &mut bytes)?;
        Ok(bytes)
    }

    /// True if a range of a tensor lies within the experts of some units.
    pub(crate) fn is_within(&self, units: &BTreeSet<Unit>, tensor: &str, range: &Range<u64>) -> bool {
        let mut pieces: Vec<Range<u64>> = Vec::new();
        for unit in units {
            for expert in self.shape.experts(*unit) {
                let of_tensor = self.pieces(unit.layer, expert).unwrap_or_default();
                let of_tensor = of_tensor.into_iter().filter(|p| p.tensor == tensor);
                pieces.extend(of_tensor.map(|p| p.offset..p.offset + p.n_byte));
            }
        }
        pieces.sort_by_key(|p| p.start);
        let mut at = range.start;
        for piece in pieces {
            if piece.start <= at && at < piece.end {
                at = piece.end;
            }
        }
        range.start < range.end && at >= range.end
    }
}

/// The index of a file of an ASSIGN message, to which it is added if it is not there.
///
/// # Errors
/// More files than a message can have.
pub(crate) fn file_of(files: &mut Vec<String>, path: String) -> anyhow::Result<u16> {
    let at = files.iter().position(|file| *file == path).unwrap_or_else(|| {
        files.push(path);
        files.len() - 1
    });
    Ok(u16::try_from(at)?)
}

/// ASSIGN messages for units; `describe` adds the weights of the experts of a unit that is not `known`, which is known
/// from then on.
///
/// # Errors
/// Those of `describe`.
pub(crate) fn assignment(
    shape: &ModelShape,
    epoch: u32,
    units: &[Unit],
    known: &mut BTreeSet<Unit>,
    mut describe: impl FnMut(Unit, &[u16], &mut Assign) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Assign>> {
    let empty = || Assign { epoch, more: true, units: vec![], files: vec![], tensors: vec![] };
    let mut messages = vec![empty()];
    let n_piece = |message: &Assign| message.tensors.iter().map(|t| t.parts.len()).sum::<usize>();
    for unit in units {
        let message = match messages.last_mut() {
            Some(last) if n_piece(last) < PIECES => last,
            _ => {
                messages.push(empty());
                messages.last_mut().expect("one was added")
            }
        };
        let experts: Vec<u16> = shape.experts(*unit).collect();
        // Assignments change often while workers load; weights are described once.
        if known.insert(*unit) {
            describe(*unit, &experts, message)?;
        }
        message.units.push(chaski_wire::Unit::Experts { layer: unit.layer, experts });
    }
    messages.last_mut().expect("there is one").more = false;
    Ok(messages)
}

fn read(model: &OpenModel, tensor: &str, offset: u64, bytes: &mut [u8]) -> anyhow::Result<()> {
    pollster::block_on(model.read(tensor, offset, bytes))
        .map_err(anyhow::Error::from_boxed)
        .with_context(|| format!("cannot read tensor `{tensor}`"))
}

/// Layers of experts as the state machines see them.
pub(crate) fn shape_of(graph: &Graph, layers: &[ExpertLayer], block: u16) -> anyhow::Result<ModelShape> {
    let mut shapes = Vec::new();
    let mut width = None;
    for layer in layers {
        let (n_in, n_out) = layer.widths(graph);
        ensure!(
            n_in == n_out && width.is_none_or(|w| w == n_in),
            "experts of different widths are not supported"
        );
        width = Some(n_in);
        let n_expert = u16::try_from(layer.n_expert).context("a layer has more experts than 65,535")?;
        shapes.push(LayerShape { layer: layer.layer, n_expert, expert_bytes: layer.expert_bytes(graph) });
    }
    Ok(ModelShape { layers: shapes, width: width.unwrap_or(0), block })
}

/// The header of a model's file without tokenizer and templates, then the data of its small tensors in their order.
fn skeleton(model: &OpenModel) -> anyhow::Result<Vec<u8>> {
    let mut writer = GgufWriter::new();
    let metadata = model.metadata();
    for (key, value) in metadata.iter() {
        if !key.starts_with("tokenizer.") && !key.starts_with("split.") {
            writer.set_value(key, value)?;
        }
    }
    writer.set("tokenizer.ggml.model", "none")?;
    let vocab = format!("{}.vocab_size", model.arch().name);
    if !metadata.contains(&vocab) {
        writer.set(&vocab, u32::try_from(model.tokenizer().n_vocab())?)?;
    }
    for tensor in model.tensors() {
        writer.tensor(&tensor.name, &tensor.ne[..tensor.n_dims as usize], tensor.ty)?;
    }
    let mut bytes = writer.head()?.bytes;
    for tensor in model.tensors().iter().filter(|t| t.n_byte <= SMALL) {
        let start = bytes.len();
        bytes.resize(start + tensor.n_byte as usize, 0);
        read(model, &tensor.name, 0, &mut bytes[start..])?;
    }
    Ok(bytes)
}
