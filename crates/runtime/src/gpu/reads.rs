//! What experts that stay with the processor cost.

/// What experts that stay with the processor have cost so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpertReads {
    /// Experts of a layer that were wanted, each once by the columns that ran together.
    pub wanted: u64,
    /// Those of them that had no place on the device, and were read.
    pub read: u64,
    /// Bytes read for them.
    pub n_byte: u64,
    /// Runs of columns through a layer that had more experts than there are places, and took rounds.
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
