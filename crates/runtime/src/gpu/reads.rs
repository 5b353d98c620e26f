//! Cost of CPU-offloaded experts.

/// Cost of CPU-offloaded experts so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpertReads {
    /// Experts needed by layers, each counted once per run of columns.
    pub wanted: u64,
    /// Experts that had no slot on the device and were read.
    pub read: u64,
    /// Bytes read.
    pub n_byte: u64,
    /// Runs of columns through a layer that needed more experts than there are slots, and took several rounds.
    pub in_rounds: u64,
}

impl std::ops::Add for ExpertReads {
    type Output = ExpertReads;

    fn add(self, o: ExpertReads) -> ExpertReads {
        self.zip(o, |a, b| a + b)
    }
}

impl std::ops::Sub for ExpertReads {
    type Output = ExpertReads;

    fn sub(self, o: ExpertReads) -> ExpertReads {
        self.zip(o, |a, b| a - b)
    }
}

impl ExpertReads {
    fn zip(self, o: ExpertReads, f: impl Fn(u64, u64) -> u64) -> ExpertReads {
        ExpertReads {
            wanted: f(self.wanted, o.wanted),
            read: f(self.read, o.read),
            n_byte: f(self.n_byte, o.n_byte),
            in_rounds: f(self.in_rounds, o.in_rounds),
        }
    }
}
