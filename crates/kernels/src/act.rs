//! How products take their activations.

/// How x is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// As it is.
    F32,
    /// In 16 bits with a scale for each run, where the weights are integers with scales; else as it is. As exact as
    /// [`Act::F32`], and faster where the device multiplies four bytes in an instruction.
    I16,
    /// In 8 bits, likewise: as inexact as that is.
    I8,
}

impl Act {
    /// All of them.
    pub const ALL: [Act; 3] = [Act::F32, Act::I16, Act::I8];

    /// Its word in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Act::F32 => "f32",
            Act::I16 => "i16",
            Act::I8 => "i8",
        }
    }
}
