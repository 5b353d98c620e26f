//! An opened model file: metadata, tokenizer, template, and the graph for a context.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use chaski_graph::Graph;
use chaski_runtime::Tensors;
use ggml_format::{
    ByteSource, FileType, GgmlType, HeaderBytes, Metadata, ModelFile, SourceError, TensorInfo,
};

use crate::arch::{Arch, SCALARS, rope_factor_tensor};
use crate::build::{Builder, Config, Loras};
use crate::changes::MetadataChanges;
use crate::error::{LoraError, ModelError};
use crate::fingerprint::fingerprint;
use crate::heads;
use crate::layers::derived;
use crate::lora::{Lora, ZEROS, check_scales, file_name};
use crate::separate;
use chaski_text::ChatTemplates;
use chaski_text::Tokenizer;

/// An opened model file; weights stay in the file until they are loaded.
pub struct Model<S> {
    files: Files<S>,
    arch: &'static Arch,
    tokenizer: Arc<Tokenizer>,
    templates: Arc<ChatTemplates>,
    /// Scale of each LoRA.
    scales: Vec<f32>,
}

/// The files of a model's tensors: its own, and those of its LoRAs. Clones share them.
pub(crate) struct Files<S> {
    file: Arc<ModelFile<S>>,
    config: Arc<Config>,
    loras: Vec<Arc<Lora<S>>>,
}

impl<S> Clone for Files<S> {
    fn clone(&self) -> Self {
        let Files { file, config, loras } = self;
        Files { file: file.clone(), config: config.clone(), loras: loras.clone() }
    }
}

impl<S: ByteSource> Model<S> {
    /// Opens a file and, if it is the first of a split set, its siblings.
    ///
    /// # Errors
    /// [`ModelError`] with the name of the file, field or tensor.
    pub async fn open(
        first: S,
        open_sibling: impl FnMut(&str) -> Result<S, SourceError>,
    ) -> Result<Self, ModelError> {
        Self::open_with(first, open_sibling, &MetadataChanges::default()).await
    }

    /// Opens a file as [`Self::open`] does, with other values for some keys of its metadata.
    ///
    /// # Errors
    /// [`ModelError`] with the name of the file, field or tensor.
    pub async fn open_with(
        first: S,
        open_sibling: impl FnMut(&str) -> Result<S, SourceError>,
        changes: &MetadataChanges,
    ) -> Result<Self, ModelError> {
        let mut file = ModelFile::open(first, open_sibling).await?;
        if let Some(changed) = changes.applied(file.metadata())? {
            file.set_metadata(changed);
        }
        let arch = Arch::of(file.metadata())?;
        let config = Config::new(file.metadata(), file.tensors())?;
        let tokenizer = Tokenizer::from_metadata(file.metadata())?;
        let templates = ChatTemplates::from_metadata(file.metadata());
        let files = Files { file: Arc::new(file), config: Arc::new(config), loras: Vec::new() };
        let (tokenizer, templates) = (Arc::new(tokenizer), Arc::new(templates));
        Ok(Model { files, arch, tokenizer, templates, scales: Vec::new() })
    }

    /// The file's metadata.
    pub fn metadata(&self) -> &Metadata {
        self.files.file.metadata()
    }

    /// The files, for reading while the model runs.
    pub(crate) fn files(&self) -> &Files<S> {
        &self.files
    }

    /// The file's tensors.
    pub fn tensors(&self) -> &[TensorInfo] {
        self.files.file.tensors()
    }

    /// The family.
    pub fn arch(&self) -> &'static Arch {
        self.arch
    }

    /// The common metadata.
    pub fn config(&self) -> &Config {
        &self.files.config
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The file's chat templates.
    pub fn templates(&self) -> &ChatTemplates {
        &self.templates
    }

    /// Tokenizer and templates, as shared ownership.
    pub fn shared_text(&self) -> (Arc<Tokenizer>, Arc<ChatTemplates>) {
        (self.tokenizer.clone(), self.templates.clone())
    }

    /// Reads all bytes of a tensor.
    ///
    /// # Errors
    /// Errors of the source.
    pub(crate) async fn read_tensor(&self, t: &TensorInfo, to: &mut [u8]) -> Result<(), SourceError> {
        self.files.file.read_tensor(t, 0, to).await
    }

    /// Bytes of all tensors.
    pub fn n_byte(&self) -> u64 {
        self.files.file.n_byte_data()
    }

    /// Values of all tensors.
    pub fn n_param(&self) -> u64 {
        self.tensors().iter().map(TensorInfo::n_elem).sum()
    }

    /// Attaches a LoRA with a scale, for runners loaded from now on.
    ///
    /// # Errors
    /// [`ModelError::Lora`] for a LoRA of another architecture, with a tensor that the model lacks or whose shape
    /// does not match, or a scale that is not finite.
    pub fn attach(&mut self, lora: Lora<S>, scale: f32) -> Result<(), ModelError> {
        check_scales(1, &[scale])?;
        lora.check(self.arch.name, |name| self.files.file.tensor(name))?;
        self.files.loras.push(Arc::new(lora));
        self.scales.push(scale);
        Ok(())
    }

    /// The LoRAs, in order of attachment.
    pub fn loras(&self) -> impl Iterator<Item = &Lora<S>> {
        self.files.loras.iter().map(Arc::as_ref)
    }

    /// Scale of each LoRA, in order of attachment.
    pub fn lora_scales(&self) -> Vec<f32> {
        self.scales.clone()
    }

    /// Sets the LoRA scales for runners loaded from now on.
    ///
    /// # Errors
    /// [`ModelError::Lora`] if the number of scales differs from the number of LoRAs, or a scale is not finite.
    pub fn set_lora_scales(&mut self, scales: &[f32]) -> Result<(), ModelError> {
        check_scales(self.scales.len(), scales)?;
        self.scales.copy_from_slice(scales);
        Ok(())
    }

    /// Fingerprints of the model and its LoRAs.
    ///
    /// # Errors
    /// Errors of the sources.
    pub(crate) async fn fingerprints(&self) -> Result<Vec<u64>, ModelError> {
        let mut all = vec![fingerprint(&self.files.file).await?];
        for lora in &self.files.loras {
            all.push(lora.fingerprint().await?);
        }
        Ok(all)
    }

    /// A short description: family, size, and file type, for example `llama 7B Q4_K - Medium`.
    pub fn describe(&self) -> String {
        let n = self.n_param() as f64;
        let size = [(1e9, "B"), (1e6, "M"), (1e3, "K")].into_iter().find(|(unit, _)| n >= *unit);
        let size = size.map_or(format!("{n}"), |(unit, letter)| format!("{:.2}{letter}", n / unit));
        let file_type = self.stated_type().map_or_else(|| self.file_type(), |t| t.title().to_owned());
        format!("{} {size} {file_type}", self.arch.name)
    }

    /// The file type that the file states.
    fn stated_type(&self) -> Option<FileType> {
        self.metadata().opt_u32("general.file_type").ok().flatten().and_then(FileType::from_id)
    }

    /// The file type's name, or the most frequent tensor format if the file has none.
    pub fn file_type(&self) -> String {
        if let Some(t) = self.stated_type() {
            return t.name().to_owned();
        }
        let count =
            |ty: GgmlType| self.tensors().iter().filter(|t| t.ty == ty).map(|t| t.n_byte).sum::<u64>();
        let most = self.tensors().iter().map(|t| t.ty).max_by_key(|ty| count(*ty));
        most.map_or("no tensors".into(), |t| t.name().to_ascii_uppercase())
    }

    /// The graph for a context of `n_ctx` tokens.
    ///
    /// # Errors
    /// [`ModelError`] for tensors that are missing or whose shape contradicts the metadata, and for invalid factors.
    pub async fn graph(&self, n_ctx: u32) -> Result<Graph, ModelError> {
        let Files { file, config, loras } = &self.files;
        let find = |name: &str| file.tensor(name);
        let factors = match rope_factor_tensor(find, config, n_ctx) {
            // They are divisors.
            Some(t) => Some(self.floats(t, config.n_rot / 2, |v| v > 0.0, "positive values").await?),
            None => None,
        };
        let mut scalars = BTreeMap::new();
        for t in self.tensors().iter().filter(|t| SCALARS.iter().any(|stem| t.name.ends_with(stem))) {
            let value = self.floats(t, 1, f32::is_finite, "a finite value").await?[0];
            scalars.insert(t.name.clone(), value);
        }
        let mut builder = Builder::new(self.metadata(), config, n_ctx, factors, scalars, &find);
        builder.reads(self.arch.reads);
        builder.adapt(Loras::new(loras.iter().map(|a| a.beside()).collect()));
        (self.arch.build)(&mut builder)?;
        let mut names = loras.iter().flat_map(|a| a.names());
        if let Some(name) = names.find(|name| builder.leaves_unadapted(name)) {
            return Err(LoraError::Unsupported { tensor: name.to_owned() }.into());
        }
        Ok(builder.finish())
    }

    /// Tensors of the file that nothing reads: the family does not support them, or others replace them.
    ///
    /// # Errors
    /// As [`Self::graph`].
    pub async fn unread(&self) -> Result<Vec<&TensorInfo>, ModelError> {
        let Files { file, config, .. } = &self.files;
        let mut read = BTreeSet::new();
        for w in self.graph(1).await?.weights {
            if file.tensor(&w.name).is_none()
                && let Some((_, from)) = derived(self.metadata(), config, &w.name)?
            {
                read.insert(from);
            }
            read.insert(w.name);
        }
        // Tensors that become constants of the graph; the set of RoPE factors depends on the context.
        let factors =
            [0, u32::MAX].map(|n_ctx| rope_factor_tensor(|name: &str| file.tensor(name), config, n_ctx));
        read.extend(factors.into_iter().flatten().map(|t| t.name.clone()));
        if self.arch.ranks.is_some() {
            read.extend(heads::tensors());
        }
        let is_read = |t: &TensorInfo| {
            let is_expert = separate::all_of(&t.name).is_some_and(|all| read.contains(&all));
            read.contains(&t.name) || is_expert || SCALARS.iter().any(|stem| t.name.ends_with(stem))
        };
        Ok(self.tensors().iter().filter(|t| !is_read(t)).collect())
    }

    /// The `n` values of an f32 tensor of graph constants; each must satisfy `right`, described by `expected`.
    async fn floats(
        &self,
        t: &TensorInfo,
        n: u32,
        right: fn(f32) -> bool,
        expected: &'static str,
    ) -> Result<Vec<f32>, ModelError> {
        let tensor = t.name.clone();
        if t.n_elem() != u64::from(n) {
            return Err(ModelError::Shape { tensor, expected: vec![n.into()], found: t.shape() });
        }
        if t.ty != GgmlType::F32 {
            let found = format!("values of type {}", t.ty.name());
            return Err(ModelError::Values { tensor, expected: "values of type f32", found });
        }
        let mut bytes = vec![0; t.n_byte as usize];
        self.files.file.read_tensor(t, 0, &mut bytes).await?;
        let values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        if let Some(wrong) = values.clone().find(|v| !right(*v)) {
            return Err(ModelError::Values { tensor, expected, found: format!("the value {wrong}") });
        }
        Ok(values.collect())
    }
}

impl<S: ByteSource> Tensors for Files<S> {
    async fn read(
        &self,
        name: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if let Some(tensor) = self.file.tensor(name) {
            return Ok(self.file.read_tensor(tensor, offset, buf).await?);
        }
        if name == ZEROS {
            buf.fill(0);
            return Ok(());
        }
        if let Some((i, name)) = file_name(name)
            && let Some(lora) = self.loras.get(i)
        {
            return Ok(lora.read(name, offset, buf).await?);
        }
        if separate::read(&self.file, name, offset, buf).await? {
            return Ok(());
        }
        let (derived, from) = derived(self.file.metadata(), &self.config, name)?
            .and_then(|(d, from)| Some((d, self.file.tensor(&from)?)))
            .ok_or_else(|| format!("no tensor `{name}`"))?;
        Ok(derived.read(&self.file, from, offset, buf).await?)
    }

    fn mapped(&self, name: &str) -> Option<(HeaderBytes, Range<usize>)> {
        self.file.map_tensor(self.file.tensor(name)?)
    }

    fn in_parallel(&self) -> bool {
        self.file.in_parallel() && self.loras.iter().all(|lora| lora.in_parallel())
    }
}

impl<S: ByteSource> Tensors for Model<S> {
    async fn read(
        &self,
        name: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.files.read(name, offset, buf).await
    }

    fn mapped(&self, name: &str) -> Option<(HeaderBytes, Range<usize>)> {
        self.files.mapped(name)
    }

    fn in_parallel(&self) -> bool {
        self.files.in_parallel()
    }
}
