//! A rendered kernel and its interface.

use crate::caps::Features;

/// Access mode of a binding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// `var<storage, read>`
    Read,
    /// `var<storage, read_write>`
    ReadWrite,
}

/// Compiler that a kernel's text is for: they differ in how optional features are enabled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// naga, which accepts subgroup operations without `enable` and rejects the directive.
    Native,
    /// A browser's compiler.
    Web,
}

/// One buffer that a kernel binds, in group 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The variable's name in WGSL; callers bind by it.
    pub name: &'static str,
    /// Its `@binding` number.
    pub index: u32,
    /// How it is used.
    pub access: Access,
}

/// The arithmetic unit that a kernel spends most of its time in.
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
    /// The name in tables and files.
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
    /// Operation and variant, such as `argmax.chunk`; also used for labels, and as the file name of a sample.
    pub name: &'static str,
    /// WGSL without `enable` lines, which [`Self::text`] puts before it.
    pub source: &'static str,
    /// Optional features that it declares and the device must support.
    pub features: Features,
    /// Buffers, by binding number.
    pub bindings: Vec<Binding>,
    /// Names of the `override` constants.
    pub overrides: Vec<&'static str>,
}

impl Kernel {
    /// The unit that does the bulk of its arithmetic; speeds are compared with its peak.
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

    /// True if browsers can run it: they have neither cooperative matrices nor coherent memory.
    pub fn is_for_web(&self) -> bool {
        !self.features.coop && !self.features.coherent
    }

    /// True if the kernel has an `override` of this name.
    pub fn has_override(&self, name: &str) -> bool {
        self.overrides.contains(&name)
    }
}
