//! Groups of requests with equal LoRA scales, by number: only they share prefixes.

/// Number of sets of scales that keep their number. Requests choose their scales, so there may be any number of sets.
const MAX_KNOWN: usize = 256;

/// The numbers of groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Bits of the scales, and the number; the last used set is the last.
    known: Vec<(Vec<u32>, u64)>,
    n_group: u64,
}

impl Groups {
    /// The group of requests with these scales. A set that was not used for long gets another number when it returns:
    /// its requests then share no prefixes with earlier ones, which changes no result.
    pub(super) fn of(&mut self, scales: &[f32]) -> u64 {
        // 0 and -0 scale alike.
        let bits: Vec<u32> = scales.iter().map(|s| (s + 0.0).to_bits()).collect();
        let known = match self.known.iter().position(|(known, _)| *known == bits) {
            Some(at) => self.known.remove(at),
            None => {
                self.n_group += 1;
                self.known.drain(..(self.known.len() + 1).saturating_sub(MAX_KNOWN));
                (bits, self.n_group - 1)
            }
        };
        let group = known.1;
        self.known.push(known);
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scales_have_one_number_and_memory_is_bounded() {
        let mut groups = Groups::default();
        assert_eq!([&[0.0, 1.0][..], &[1.0, 1.0], &[-0.0, 1.0]].map(|s| groups.of(s)), [0, 1, 0]);
        for i in 0..2 * MAX_KNOWN {
            groups.of(&[i as f32, 2.0]);
            assert_eq!(groups.of(&[0.0, 1.0]), 0, "it stays in use");
        }
        assert_eq!(groups.known.len(), MAX_KNOWN);
        assert_eq!(groups.of(&[1.0, 1.0]), 2 + 2 * MAX_KNOWN as u64, "it was forgotten");
    }
}
