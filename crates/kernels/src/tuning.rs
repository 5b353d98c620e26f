//! Tuning parameters of products, which affect speed only: shipped defaults by device, and measured choices.

use crate::act::ActivationPrecision;
use crate::caps::Caps;

/// Distribution of the rows of a one-column product over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatVecTune {
    /// Number of threads to launch; it determines the rows per team.
    pub fill: u32,
    /// Maximum number of threads per team.
    pub team: u32,
    /// Precision of x where the caller does not choose: [`ActivationPrecision::F32`] or [`ActivationPrecision::I16`].
    pub act: ActivationPrecision,
    /// Twice as many rows per team step, if such a kernel exists: each load of x serves more rows, but there are fewer
    /// teams.
    pub doubled: bool,
}

/// PCI numbers of vendors.
pub mod vendor {
    /// AMD.
    pub const AMD: u32 = 0x1002;
    /// Apple, whose devices are on no PCI bus.
    pub const APPLE: u32 = 0x106b;
    /// Intel.
    pub const INTEL: u32 = 0x8086;
    /// NVIDIA.
    pub const NVIDIA: u32 = 0x10de;
}

/// Kind of device that a row of [`SHIPPED`] applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Discrete,
    Integrated,
    Software,
}

/// One row of [`SHIPPED`].
struct Shipped {
    /// PCI vendor id; `None` matches any.
    vendor: Option<u32>,
    kind: Kind,
    fill: u32,
    team: u32,
    /// Origin of the numbers.
    source: &'static str,
}

/// Defaults by vendor and kind of device; the first match applies. Rows for AMD, Apple and Intel follow published
/// facts, as none of these was here to measure: about a quarter of the threads that a device holds at once, as on the
/// H200, and the teams of llama.cpp's kernels.
static SHIPPED: &[Shipped] = &[
    Shipped {
        vendor: Some(vendor::NVIDIA),
        kind: Kind::Discrete,
        fill: 1 << 16,
        team: 512,
        source: "measured on an NVIDIA H200",
    },
    Shipped {
        vendor: Some(vendor::AMD),
        kind: Kind::Discrete,
        fill: 1 << 15,
        team: 64,
        source: "not measured: RDNA 3 with 64 to 96 units of 32 waves, teams of one wave",
    },
    Shipped {
        vendor: Some(vendor::AMD),
        kind: Kind::Integrated,
        fill: 1 << 13,
        team: 64,
        source: "not measured: RDNA 3 with 12 to 40 units of 32 waves, teams of one wave",
    },
    Shipped {
        vendor: Some(vendor::APPLE),
        kind: Kind::Integrated,
        fill: 1 << 14,
        team: 64,
        source: "not measured: 24,576 threads on an M1 and 98,304 on an M1 Max, teams of two SIMD groups",
    },
    Shipped {
        vendor: Some(vendor::INTEL),
        kind: Kind::Discrete,
        fill: 1 << 14,
        team: 64,
        source: "not measured: Arc with 160 to 512 units of 8 threads of 16 lanes, teams of four of these",
    },
    Shipped {
        vendor: Some(vendor::INTEL),
        kind: Kind::Integrated,
        fill: 1 << 13,
        team: 64,
        source: "not measured: Xe with 64 to 128 units of 8 threads of 16 lanes, teams of four of these",
    },
    Shipped {
        vendor: None,
        kind: Kind::Software,
        fill: 1 << 11,
        team: 512,
        source: "few teams, since x is prepared for each",
    },
    Shipped {
        vendor: None,
        kind: Kind::Integrated,
        fill: 1 << 14,
        team: 256,
        source: "not measured: a quarter of a discrete device's threads",
    },
    Shipped {
        vendor: None,
        kind: Kind::Discrete,
        fill: 1 << 16,
        team: 256,
        source: "not measured: as on an NVIDIA H200, smaller teams",
    },
];

impl MatVecTune {
    /// Smallest team.
    pub const LEAST_TEAM: u32 = 32;

    /// The shipped default for a device, and its origin.
    pub fn shipped(caps: &Caps) -> (Self, &'static str) {
        let kind = match (caps.software, caps.integrated) {
            (true, _) => Kind::Software,
            (false, true) => Kind::Integrated,
            (false, false) => Kind::Discrete,
        };
        let row = SHIPPED
            .iter()
            .find(|s| s.kind == kind && s.vendor.is_none_or(|v| v == caps.vendor))
            .expect("there is a row for every kind");
        let act = if caps.int_dot { ActivationPrecision::I16 } else { ActivationPrecision::F32 };
        (MatVecTune { fill: row.fill, team: row.team, act, doubled: false }, row.source)
    }
}

/// Properties of a product that determine its best tuning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProductClass {
    /// Formats of the weights, joined by `+`.
    pub format: String,
    /// Epilogue, as in kernel names.
    pub epilogue: String,
    /// Rows of all formats.
    pub n_row: u32,
    /// Values per row.
    pub n_col: u32,
}

impl std::fmt::Display for ProductClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}x{}", self.format, self.epilogue, self.n_row, self.n_col)
    }
}

/// A measured choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// Class of products.
    pub class: ProductClass,
    /// The choice.
    pub tune: MatVecTune,
}

/// All measurements of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Products of one column.
    pub products: Vec<Tuned>,
}

impl Tuning {
    /// The choice for a class: its own, else that of the nearest shape with the same formats and epilogue, if rows and
    /// columns differ by at most a factor of two each.
    pub fn product(&self, class: &ProductClass) -> Option<MatVecTune> {
        let distance = |t: &ProductClass| {
            let ratio = |a: u32, b: u32| (f64::from(a.max(1)) / f64::from(b.max(1))).log2().abs();
            (ratio(t.n_row, class.n_row), ratio(t.n_col, class.n_col))
        };
        self.products
            .iter()
            .filter(|t| t.class.format == class.format && t.class.epilogue == class.epilogue)
            .map(|t| (distance(&t.class), t.tune))
            .filter(|((rows, cols), _)| *rows <= 1.0 && *cols <= 1.0)
            .min_by(|a, b| (a.0.0 + a.0.1).total_cmp(&(b.0.0 + b.0.1)))
            .map(|(_, tune)| tune)
    }

    /// Stores a choice, replacing an older one for the same class.
    pub fn set(&mut self, class: ProductClass, tune: MatVecTune) {
        match self.products.iter_mut().find(|t| t.class == class) {
            Some(t) => t.tune = tune,
            None => self.products.push(Tuned { class, tune }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(epilogue: &str, n_row: u32, n_col: u32) -> ProductClass {
        ProductClass { format: "q4_K".into(), epilogue: epilogue.into(), n_row, n_col }
    }

    #[test]
    fn every_kind_of_device_has_a_shipped_default() {
        for (software, integrated) in [(false, false), (false, true), (true, false), (true, true)] {
            for vendor in [0, vendor::NVIDIA, vendor::AMD, vendor::APPLE, vendor::INTEL] {
                let caps = Caps { software, integrated, vendor, ..Caps::base() };
                let (tune, source) = MatVecTune::shipped(&caps);
                assert!(tune.fill >= 256 && tune.team >= 64 && !source.is_empty());
                // Rows of vendors say whose facts they follow; nobody measured them here.
                let is_measured = source.starts_with("measured");
                let may_be = (software, integrated, vendor) == (false, false, vendor::NVIDIA);
                assert_eq!(is_measured, may_be, "{vendor:#x}: {source}");
            }
        }
    }

    #[test]
    fn vendors_have_rows_of_their_own() {
        let of = |vendor, integrated| MatVecTune::shipped(&Caps { vendor, integrated, ..Caps::base() });
        let [small, large] = [true, false].map(|integrated| of(vendor::AMD, integrated).0);
        assert!(small.fill < large.fill && small.team == 64 && large.team == 64);
        assert_ne!(of(vendor::APPLE, true), of(0, true));
        assert_ne!(of(vendor::INTEL, false), of(0, false));
    }

    #[test]
    fn the_nearest_shape_is_taken_if_it_is_near() {
        let (a, _) = MatVecTune::shipped(&Caps::base());
        let b = MatVecTune { fill: 1 << 12, ..a };
        let mut t = Tuning::default();
        t.set(class("add", 2048, 2048), a);
        t.set(class("add", 4096, 4096), b);
        t.set(class("add", 4096, 4096), b);
        assert_eq!(t.products.len(), 2);
        assert_eq!(t.product(&class("add", 2048, 2048)), Some(a));
        assert_eq!(t.product(&class("add", 5120, 5120)), Some(b));
        assert_eq!(t.product(&class("add", 16384, 4096)), None);
        assert_eq!(t.product(&class("glu", 2048, 2048)), None);
    }
}
