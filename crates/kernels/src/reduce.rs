//! Thread counts for kernels whose teams reduce (`shared/reduce.wgsl.jinja`).

use crate::caps::Caps;

/// Threads of a workgroup, of a team, and the constants that say so.
pub(crate) struct Teams {
    pub(crate) wg: u32,
    pub(crate) team: u32,
}

impl Teams {
    /// Teams of about `want` threads in workgroups of about `wg`; both are powers of two.
    pub(crate) fn new(caps: &Caps, want: u32, wg: u32) -> Self {
        let wg = wg.min(caps.max_threads).max(1);
        let low = caps.subgroup.map_or(1, |(_, max)| max.min(wg));
        let team = want.next_power_of_two().clamp(low, wg);
        Teams { wg: wg.max(team), team }
    }

    /// One team that is the whole workgroup.
    pub(crate) fn whole(caps: &Caps, wg: u32) -> Self {
        Teams::new(caps, wg, wg)
    }

    /// `WG`, `T` and, with subgroups, `SG_MIN`.
    pub(crate) fn constants(&self, caps: &Caps) -> Vec<(&'static str, f64)> {
        let mut c = vec![("WG", f64::from(self.wg)), ("T", f64::from(self.team))];
        if let Some((min, _)) = caps.subgroup {
            c.push(("SG_MIN", f64::from(min)));
        }
        c
    }

    /// Workgroups for `n` rows, a team each.
    pub(crate) fn groups(&self, n: u32) -> u32 {
        n.div_ceil(self.wg / self.team)
    }

    /// [`Self::constants`] and `ROWS`.
    pub(crate) fn rows(&self, caps: &Caps, n: u32) -> Vec<(&'static str, f64)> {
        let mut c = self.constants(caps);
        c.push(("ROWS", n.into()));
        c
    }
}
