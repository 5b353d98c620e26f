//! A rendered kernel and its interface.

use crate::caps::Features;

/// How a kernel uses a buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// `var<storage, read>`
    Read,
    /// `var<storage, read_write>`
    ReadWrite,
}

/// Who compiles a kernel's text: what it must say before it uses an optional feature differs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// naga, which takes subgroup operations unasked and refuses to be told of them.
    Native,
    /// A browser's compiler.
    Web,
}

/// One buffer that a kernel binds, in group 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The variable's name in the WGSL text; callers bind by it.
    pub name: &'static str,
    /// Its `@binding` number.
    pub index: u32,
    /// How it is used.
    pub access: Access,
}

/// The part of a device that does a kernel's arithmetic.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// f32 multiply-adds.
    F32,
    /// f16 multiply-adds.
    F16,
    /// Dot products of four signed bytes.
    Int8,
    /// Cooperative matrices, f16 inputs and f32 sums.
    Coop,
}

impl Unit {
    /// The word for it in tables and files.
    pub const fn word(self) -> &'static str {
        match self {
            Unit::F32 => "f32",
            Unit::F16 => "f16",
            Unit::Int8 => "i8",
            Unit::Coop => "coop",
        }
    }
}

/// A rendered kernel; its entry point is `main`.
#[derive(Debug)]
pub struct Kernel {
    /// Operation and variant, such as `argmax.chunk`; also every label, and the file's name if it is a sample.
    pub name: &'static str,
    /// WGSL without `enable` lines, which [`Self::text`] puts before it.
    pub source: &'static str,
    /// The optional features that it declares: a device must have them.
    pub features: Features,
    /// Buffers, by binding number.
    pub bindings: Vec<Binding>,
    /// Names of the `override` constants.
    pub overrides: Vec<&'static str>,
}

impl Kernel {
    /// What does the bulk of its arithmetic, to compare its speed with.
    pub fn unit(&self) -> Unit {
        if self.features.coop {
            Unit::Coop
        } else if self.source.contains("dot4I8Packed") {
            Unit::Int8
        } else {
            Unit::F32
        }
    }

    /// The whole text of the module: [`Self::source`] behind its `enable` lines.
    pub fn text(&self, dialect: Dialect) -> String {
        let enables = [
            (self.features.f16, "enable f16;\n"),
            (self.features.coop, "enable wgpu_cooperative_matrix;\n"),
            (self.features.subgroup && dialect == Dialect::Web, "enable subgroups;\n"),
        ];
        let head: String = enables.iter().filter(|(on, _)| *on).map(|(_, line)| *line).collect();
        head + self.source
    }

    /// Whether a browser can have it: there are neither cooperative matrices nor coherent memory.
    pub fn is_for_web(&self) -> bool {
        !self.features.coop && !self.features.coherent
    }

    /// Whether the kernel has an `override` of this name.
    pub fn has_override(&self, name: &str) -> bool {
        self.overrides.contains(&name)
    }
}
