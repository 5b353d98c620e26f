//! Threads and memory of a workgroup, both of which may depend on `override` constants.

use naga::{
    AddressSpace, ArraySize, BinaryOperator as Binary, Expression, Handle, Literal, Module, Override,
    TypeInner,
};

/// The size of a workgroup.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Threads.
    pub threads: u32,
    /// Bytes of workgroup memory.
    pub n_byte: u32,
}

/// A kernel as naga parsed it, for computing workgroup sizes with any constants.
pub struct Workgroup(pub(super) Module);

impl Workgroup {
    /// The size with these constants; others keep their defaults. `None` if an expression is not integral or out of
    /// range.
    pub fn size(&self, constants: &[(&str, f64)]) -> Option<Size> {
        let sizes = Sizes { module: &self.0, constants };
        let entry = &self.0.entry_points[0];
        let mut threads = 1u32;
        for axis in 0..3 {
            let given = entry.workgroup_size_overrides.and_then(|all| all[axis]);
            let n = given.map_or(Some(entry.workgroup_size[axis]), |e| sizes.whole(e))?;
            threads = threads.checked_mul(n)?;
        }
        let mut n_byte = 0u32;
        for (_, var) in self.0.global_variables.iter() {
            if var.space == AddressSpace::WorkGroup {
                // WebGPU's accounting.
                n_byte = n_byte.checked_add(sizes.bytes(var.ty)?.checked_next_multiple_of(16)?)?;
            }
        }
        Some(Size { threads, n_byte })
    }
}

struct Sizes<'a> {
    module: &'a Module,
    constants: &'a [(&'a str, f64)],
}

impl Sizes<'_> {
    fn bytes(&self, ty: Handle<naga::Type>) -> Option<u32> {
        match self.module.types[ty].inner {
            TypeInner::Array { size: ArraySize::Constant(n), stride, .. } => n.get().checked_mul(stride),
            TypeInner::Array { size: ArraySize::Pending(n), stride, .. } => {
                (self.of_override(n)? as u32).checked_mul(stride)
            }
            TypeInner::Array { size: ArraySize::Dynamic, .. } => None,
            ref inner => Some(inner.size(self.module.to_ctx())),
        }
    }

    fn of_override(&self, handle: Handle<Override>) -> Option<f64> {
        let o = &self.module.overrides[handle];
        let given = self.constants.iter().find(|(name, _)| Some(*name) == o.name.as_deref());
        given.map(|(_, value)| *value).or_else(|| self.value(o.init?))
    }

    fn whole(&self, e: Handle<Expression>) -> Option<u32> {
        let value = self.value(e)?;
        (value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value)).then_some(value as u32)
    }

    /// The value of an integral constant expression.
    fn value(&self, e: Handle<Expression>) -> Option<f64> {
        match self.module.global_expressions[e] {
            Expression::Literal(Literal::U32(n)) => Some(n.into()),
            Expression::Literal(Literal::I32(n)) => Some(n.into()),
            Expression::Literal(Literal::F32(n)) => Some(n.into()),
            Expression::Literal(Literal::AbstractInt(n)) => Some(n as f64),
            Expression::Literal(Literal::Bool(b)) => Some(f64::from(u8::from(b))),
            Expression::Constant(c) => self.value(self.module.constants[c].init),
            Expression::Override(o) => self.of_override(o),
            Expression::As { expr, .. } => self.value(expr),
            Expression::Select { condition, accept, reject } => {
                self.value(if self.value(condition)? != 0.0 { accept } else { reject })
            }
            Expression::Math { fun, arg, arg1, .. } => {
                let (a, b) = (self.value(arg)?, self.value(arg1?)?);
                match fun {
                    naga::MathFunction::Min => Some(a.min(b)),
                    naga::MathFunction::Max => Some(a.max(b)),
                    _ => None,
                }
            }
            Expression::Binary { op, left, right } => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                match op {
                    Binary::Add => Some(a + b),
                    Binary::Subtract => Some(a - b),
                    Binary::Multiply => Some(a * b),
                    Binary::Divide if b != 0.0 => Some((a / b).trunc()),
                    Binary::Modulo if b != 0.0 => Some(a % b),
                    Binary::Equal => Some(f64::from(u8::from(a == b))),
                    Binary::NotEqual => Some(f64::from(u8::from(a != b))),
                    Binary::Less => Some(f64::from(u8::from(a < b))),
                    Binary::LessEqual => Some(f64::from(u8::from(a <= b))),
                    Binary::Greater => Some(f64::from(u8::from(a > b))),
                    Binary::GreaterEqual => Some(f64::from(u8::from(a >= b))),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
