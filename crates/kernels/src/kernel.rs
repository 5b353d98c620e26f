//! The rendered kernels, embedded with what naga found in them.

use crate::ops::measure::Unit;

/// How a kernel uses a buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// `var<storage, read>`
    Read,
    /// `var<storage, read_write>`
    ReadWrite,
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

/// A rendered kernel; its entry point is `main`.
#[derive(Debug)]
pub struct Kernel {
    /// Operation and variant, such as `mul_mat_vec.q4_K.none.add.sg`; also the file's name and every label.
    pub name: &'static str,
    /// WGSL without `enable` lines: the runtime prepends what its target needs.
    pub source: &'static str,
    /// Uses subgroup operations.
    pub needs_subgroup: bool,
    /// Uses `f16` values.
    pub needs_f16: bool,
    /// Uses cooperative matrices.
    pub needs_coop: bool,
    /// Workgroups read what others have written in the same dispatch.
    pub needs_coherent: bool,
    /// Buffers, by binding number.
    pub bindings: &'static [Binding],
    /// Names of the `override` constants.
    pub overrides: &'static [&'static str],
}

include!("../rendered/index.rs");

impl Kernel {
    /// What does the bulk of its arithmetic, to compare its speed with.
    pub fn unit(&self) -> Unit {
        if self.needs_coop {
            Unit::Coop
        } else if self.source.contains("dot4I8Packed") {
            Unit::Int8
        } else {
            Unit::F32
        }
    }

    /// The kernel of this name.
    pub fn find(name: &str) -> Option<&'static Kernel> {
        KERNELS.binary_search_by(|k| k.name.cmp(name)).ok().map(|i| &KERNELS[i])
    }

    /// Whether the kernel has an `override` of this name.
    pub fn has_override(&self, name: &str) -> bool {
        self.overrides.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_sorted_and_found_by_name() {
        assert!(KERNELS.is_sorted_by(|a, b| a.name < b.name));
        for k in KERNELS {
            assert!(std::ptr::eq(Kernel::find(k.name).expect("a row of the table"), k));
        }
        assert!(Kernel::find("no such kernel").is_none());
    }

    #[test]
    fn no_kernel_binds_more_than_webgpu_guarantees() {
        for k in KERNELS {
            assert!(k.bindings.len() <= 8, "{} binds {} buffers", k.name, k.bindings.len());
        }
    }
}
