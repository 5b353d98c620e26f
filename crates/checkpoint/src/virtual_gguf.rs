//! A GGUF file that exists nowhere: its header in memory, its tensors made when they are read.

use std::ops::Range;

use ggml_format::{ByteSource, GgmlType, GgufWriter, HeaderBytes, OwnedValue, SourceError, WriteError};

use crate::recipe::{Context, Recipe, RecipeError};

/// A tensor of a virtual file.
#[derive(Clone, Debug)]
pub struct VirtualTensor {
    /// Its name in GGUF.
    pub name: String,
    /// Sizes in ggml's order, fastest varying first; the first one is the row length.
    pub ne: Vec<u64>,
    /// Its type.
    pub ty: GgmlType,
    /// Its rows.
    pub recipe: Recipe,
}

impl VirtualTensor {
    /// A tensor of the recipe's native type whose outer dimensions are `outer`, outermost first.
    ///
    /// # Errors
    /// [`VirtualError::Recipe`] unless the recipe has as many rows.
    pub fn new(
        name: impl Into<String>,
        outer: &[u64],
        recipe: Recipe,
    ) -> Result<VirtualTensor, VirtualError> {
        let ne = outer.iter().chain([&recipe.n_col()]).rev().copied().collect();
        let tensor = VirtualTensor { name: name.into(), ne, ty: recipe.native(), recipe };
        tensor.check()?;
        Ok(tensor)
    }

    /// True for a matrix, or several.
    pub fn is_matrix(&self) -> bool {
        self.ne.len() > 1
    }

    fn check(&self) -> Result<(), VirtualError> {
        let located = |source| VirtualError::Recipe { tensor: self.name.clone(), source };
        let n_row = self.ne.iter().skip(1).try_fold(1u64, |n, &size| n.checked_mul(size));
        let found = (Some(self.recipe.n_row()), Some(self.recipe.n_col()));
        if (n_row, self.ne.first().copied()) != found {
            let (tensor, ne) = (self.name.clone(), self.ne.clone());
            return Err(VirtualError::Shape {
                tensor,
                ne,
                n_row: self.recipe.n_row(),
                n_col: self.recipe.n_col(),
            });
        }
        self.recipe.check(self.ty).map_err(located)
    }
}

/// A virtual file that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum VirtualError {
    #[error("tensor `{tensor}`: cannot be made")]
    Recipe {
        tensor: String,
        #[source]
        source: RecipeError,
    },
    #[error(
        "tensor `{tensor}`: expected the shape {ne:?} (ggml's order), found {n_row} rows of {n_col} values"
    )]
    Shape { tensor: String, ne: Vec<u64>, n_row: u64, n_col: u64 },
    #[error("cannot make the header of a GGUF file")]
    Write(#[from] WriteError),
}

/// Collects keys and tensors of a virtual file.
#[derive(Clone, Debug, Default)]
pub struct VirtualGguf {
    /// The keys, in the order of the file.
    pub keys: Vec<(String, OwnedValue)>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<VirtualTensor>,
}

impl VirtualGguf {
    /// Adds a key.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<OwnedValue>) {
        self.keys.push((key.into(), value.into()));
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&OwnedValue> {
        self.keys.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Adds a tensor `NAME.scale` after each `NAME.weight` whose type has its values without a factor, as of nvfp4.
    ///
    /// # Errors
    /// As [`VirtualTensor::new`].
    pub(crate) fn add_factors(&mut self) -> Result<(), VirtualError> {
        let mut tensors = Vec::with_capacity(self.tensors.len());
        for tensor in std::mem::take(&mut self.tensors) {
            let factors = tensor.recipe.factors().filter(|_| tensor.ty == tensor.recipe.native());
            let stem = tensor.name.strip_suffix(".weight").unwrap_or(&tensor.name);
            let scale = factors.map(|factors| VirtualTensor::new(format!("{stem}.scale"), &[], factors));
            tensors.push(tensor);
            tensors.extend(scale.transpose()?);
        }
        self.tensors = tensors;
        Ok(())
    }

    /// The file over the files that its recipes name; `name` is used in messages.
    ///
    /// # Errors
    /// For tensors that cannot be made of their recipes, and names that no GGUF file can have.
    pub fn finish<S: ByteSource>(
        self,
        name: impl Into<String>,
        files: Vec<S>,
    ) -> Result<VirtualSource<S>, VirtualError> {
        let mut writer = GgufWriter::new();
        for (key, value) in self.keys {
            writer.set(&key, value)?;
        }
        for tensor in &self.tensors {
            tensor.check()?;
            writer.tensor(&tensor.name, &tensor.ne, tensor.ty)?;
        }
        let head = writer.head()?;
        let tensors =
            self.tensors.into_iter().zip(head.tensors).map(|(tensor, place)| Placed { tensor, place });
        Ok(VirtualSource {
            name: name.into(),
            head: HeaderBytes::from(head.bytes),
            len: head.n_byte,
            tensors: tensors.collect(),
            context: Context::new(files),
        })
    }
}

/// A tensor and its place in the file.
struct Placed {
    tensor: VirtualTensor,
    place: Range<u64>,
}

/// A GGUF file whose tensors are made of ranges of other files whenever they are read.
///
/// Memory does not depend on its size: reading takes a few MiB, and 32 MiB of panels of matrices that are transposed.
/// Blocks of 1 MiB or more in order read every byte once, and at most the rows at their borders twice.
pub struct VirtualSource<S> {
    name: String,
    head: HeaderBytes,
    len: u64,
    tensors: Vec<Placed>,
    context: Context<S>,
}

impl<S> std::fmt::Debug for VirtualSource<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VirtualSource({:?}, {} bytes, {} tensors)", self.name, self.len, self.tensors.len())
    }
}

impl<S: ByteSource> VirtualSource<S> {
    /// The header: metadata and directory, with the padding after it.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The tensors, in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = &VirtualTensor> {
        self.tensors.iter().map(|placed| &placed.tensor)
    }

    /// The files that tensors are made of.
    pub fn files(&self) -> &[S] {
        &self.context.files
    }

    async fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        let end = offset + buf.len() as u64;
        let n_head = self.head.len() as u64;
        if offset < n_head {
            let n = n_head.min(end) - offset;
            buf[..n as usize].copy_from_slice(&self.head[offset as usize..][..n as usize]);
        }
        let mut done = offset.max(n_head);
        let first = self.tensors.partition_point(|placed| placed.place.end <= done);
        for Placed { tensor, place } in &self.tensors[first..] {
            if place.start >= end || done >= end {
                break;
            }
            let (start, stop) = (place.start.max(done), place.end.min(end));
            if start >= stop {
                continue;
            }
            buf[(done - offset) as usize..(start - offset) as usize].fill(0);
            let part = &mut buf[(start - offset) as usize..(stop - offset) as usize];
            let read = tensor.recipe.read_at(&self.context, tensor.ty, start - place.start, part).await;
            read.map_err(|e| SourceError::Other {
                name: format!("{}: tensor `{}`", self.name, tensor.name),
                source: Box::new(e),
            })?;
            done = stop;
        }
        if done < end {
            buf[(done - offset) as usize..].fill(0);
        }
        Ok(())
    }
}

impl<S: ByteSource> ByteSource for VirtualSource<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(&self.name, self.len, offset, buf.len() as u64)?;
        self.read(offset, buf).await
    }
}
