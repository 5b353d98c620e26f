//! Capabilities and limits of a device that choose and size kernels.

/// Optional shader features that a kernel declares. It may use no others; naga checks this.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features {
    /// Subgroup operations and built-in values.
    pub subgroup: bool,
    /// `f16` values.
    pub f16: bool,
    /// Cooperative matrices.
    pub coop: bool,
    /// Workgroups read what others have written in the same dispatch.
    pub coherent: bool,
}

impl Features {
    /// No optional feature.
    pub const NONE: Features = Features { subgroup: false, f16: false, coop: false, coherent: false };
    /// Subgroup operations alone.
    pub const SUBGROUP: Features = Features { subgroup: true, ..Features::NONE };
    /// `f16` values alone.
    pub const F16: Features = Features { f16: true, ..Features::NONE };

    /// All of both.
    #[must_use]
    pub const fn and(self, other: Features) -> Features {
        Features {
            subgroup: self.subgroup || other.subgroup,
            f16: self.f16 || other.f16,
            coop: self.coop || other.coop,
            coherent: self.coherent || other.coherent,
        }
    }

    /// True if `others` has all of them.
    pub fn are_in(self, others: Features) -> bool {
        self.and(others) == others
    }

    /// The words for them, in the order of their declaration.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.subgroup, "subgroup"),
            (self.f16, "f16"),
            (self.coop, "coop"),
            (self.coherent, "coherent"),
        ];
        all.into_iter().filter(|f| f.0).map(|f| f.1)
    }
}

/// Which optional shader features a kernel may use; every kernel is rendered for one of these.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum FeatureSet {
    /// Neither subgroups nor cooperative matrices: runs everywhere.
    Base,
    /// Subgroup operations.
    Sg,
    /// Subgroup operations and cooperative matrices.
    Coop,
    /// Subgroup operations in kernels without barriers, for devices that are CPUs.
    Alone,
}

impl FeatureSet {
    /// The name of the set in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            FeatureSet::Base => "base",
            FeatureSet::Sg => "sg",
            FeatureSet::Coop => "coop",
            FeatureSet::Alone => "alone",
        }
    }

    /// All of them.
    pub const ALL: [FeatureSet; 4] = [FeatureSet::Base, FeatureSet::Sg, FeatureSet::Coop, FeatureSet::Alone];

    /// The features that kernels of the set may use.
    pub const fn features(self) -> Features {
        match self {
            FeatureSet::Base => Features::NONE,
            FeatureSet::Sg | FeatureSet::Alone => Features::SUBGROUP,
            FeatureSet::Coop => Features { coop: true, f16: true, ..Features::SUBGROUP },
        }
    }
}

/// Shape of cooperative matrices, with f16 inputs and f32 sums: kernels exist for those in [`Self::ALL`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoopShape {
    /// Rows, columns, and length of the sums.
    pub side: u32,
    /// Threads of a subgroup, which hold a matrix together.
    pub lanes: u32,
}

impl CoopShape {
    /// NVIDIA's tensor cores, and AMD's from RDNA 3 on where subgroups have 32 threads.
    pub const WARP: CoopShape = CoopShape { side: 16, lanes: 32 };
    /// AMD's from RDNA 3 on where subgroups have 64 threads.
    pub const WAVE: CoopShape = CoopShape { side: 16, lanes: 64 };
    /// Apple's.
    pub const SIMDGROUP: CoopShape = CoopShape { side: 8, lanes: 32 };
    /// Mesa's software device with vectors of 256 bits, for tests.
    pub const SOFTWARE: CoopShape = CoopShape { side: 8, lanes: 8 };

    /// All shapes, preferred ones first.
    pub const ALL: [CoopShape; 4] = [Self::WARP, Self::WAVE, Self::SIMDGROUP, Self::SOFTWARE];

    /// The shape for subgroups of this size, if there is one with these sides.
    pub fn find(lanes: u32, sides: &[u32]) -> Option<CoopShape> {
        Self::ALL.into_iter().find(|s| s.lanes == lanes && sides.contains(&s.side))
    }
}

/// The capabilities and limits of a device; the pure input to every kernel choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Smallest and largest subgroup size, if subgroup operations may be used.
    pub subgroup: Option<(u32, u32)>,
    /// `f16` arithmetic and storage in shaders.
    pub f16: bool,
    /// Cooperative matrices, if kernels have a shape that the device has.
    pub coop: Option<CoopShape>,
    /// Workgroups can read what others wrote in the same dispatch, after an atomic counter.
    pub coherent: bool,
    /// A dot product of four bytes is probably one instruction.
    pub int_dot: bool,
    /// PCI number of the vendor; 0 if it is not known.
    pub vendor: u32,
    /// The device shares its memory with the CPU.
    pub integrated: bool,
    /// Threads a workgroup may have.
    pub max_threads: u32,
    /// Bytes of workgroup memory per workgroup.
    pub max_workgroup_bytes: u32,
    /// Bytes per storage binding.
    pub max_binding_bytes: u64,
    /// Workgroups along each axis of a grid.
    pub max_groups: u32,
    /// The device is a software renderer: shaders run on the CPU.
    pub software: bool,
    /// Barriers cost more than reading twice, so kernels avoid them where they can. Requires subgroups.
    pub alone: bool,
}

impl Caps {
    /// WebGPU's default limits and no optional feature.
    pub const fn base() -> Self {
        Caps {
            subgroup: None,
            f16: false,
            coop: None,
            coherent: false,
            int_dot: false,
            vendor: 0,
            integrated: false,
            max_threads: 256,
            max_workgroup_bytes: 16384,
            max_binding_bytes: 128 << 20,
            max_groups: 65535,
            software: false,
            alone: false,
        }
    }

    /// True if kernels with cooperative matrices are used here: the build for the web leaves them out, as browsers have
    /// no use for them.
    pub const fn uses_coop(&self) -> bool {
        self.coop_shape().is_some()
    }

    /// Their shape, if they are.
    pub const fn coop_shape(&self) -> Option<CoopShape> {
        if cfg!(target_arch = "wasm32") { None } else { self.coop }
    }

    /// The same for kernels whose workgroups read what others wrote.
    pub const fn uses_coherent(&self) -> bool {
        cfg!(not(target_arch = "wasm32")) && self.coherent
    }

    /// Threads of a workgroup that reduces many values by a tree; four where barriers are expensive.
    pub(crate) fn tree_threads(&self) -> f64 {
        if self.alone { 4.0 } else { 256.0 }
    }

    /// The largest feature set that is available.
    pub const fn most(&self) -> FeatureSet {
        match (self.coop.is_some(), self.alone) {
            (true, _) => FeatureSet::Coop,
            (false, true) => FeatureSet::Alone,
            (false, false) => self.set(),
        }
    }

    /// The optional features that kernels can use here.
    pub const fn features(&self) -> Features {
        let Caps { f16, coherent, .. } = *self;
        Features { subgroup: self.subgroup.is_some(), f16, coop: self.coop.is_some(), coherent }
    }

    /// The feature set that kernels with team reductions use here: base or sg.
    pub const fn set(&self) -> FeatureSet {
        if self.subgroup.is_some() { FeatureSet::Sg } else { FeatureSet::Base }
    }
}
