//! Names of the parts of a swarm: workers, hosts, calls, and the blocks of experts that are placed.

/// A connection of a worker, named by the transport; never reused.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// A worker; the same when it comes back over another connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u64);

/// A machine: replicas of a unit are on different ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

/// A digest of the bits that a worker computes from fixed inputs. Workers of one class compute equal bits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u64);

/// A call of the engine, named by it; never reused.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A column of a call and one of its experts, whose product is a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPair {
    /// Expert of the layer.
    pub expert: u16,
    /// Row of [`Call::x`](crate::Call::x).
    pub column: u16,
    /// Slot of the expert among those of the column.
    pub slot: u16,
}

/// A block of consecutive experts of a layer: what is placed, loaded and announced as one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// Layer of the model.
    pub layer: u16,
    /// Block of the layer: experts `block * size` and the `size - 1` after it.
    pub block: u16,
}

/// The experts of one layer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// Layer of the model.
    pub layer: u16,
    /// Number of experts.
    pub n_expert: u16,
    /// Bytes of one expert's matrices.
    pub expert_bytes: u64,
}

/// The experts of a model, in blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelShape {
    /// Layers with experts, ascending.
    pub layers: Vec<LayerShape>,
    /// Values in a row of activations.
    pub width: u32,
    /// Experts in a block, at least 1.
    pub block: u16,
}

impl ModelShape {
    /// The experts of a layer; `None` if the layer has none.
    pub fn layer(&self, layer: u16) -> Option<&LayerShape> {
        self.layers.binary_search_by_key(&layer, |l| l.layer).ok().map(|i| &self.layers[i])
    }

    /// The unit that an expert belongs to; `None` if there is no such expert.
    pub fn unit(&self, layer: u16, expert: u16) -> Option<Unit> {
        let shape = self.layer(layer)?;
        (expert < shape.n_expert).then(|| Unit { layer, block: expert / self.block.max(1) })
    }

    /// The experts of a unit; an empty range if there is no such unit.
    pub fn experts(&self, unit: Unit) -> std::ops::Range<u16> {
        let n_expert = self.layer(unit.layer).map_or(0, |l| u32::from(l.n_expert));
        let start = (u32::from(unit.block) * u32::from(self.block.max(1))).min(n_expert);
        start as u16..(start + u32::from(self.block.max(1))).min(n_expert) as u16
    }

    /// The unit of a message: a whole block of experts; `None` for anything else.
    pub(crate) fn named(&self, unit: &chaski_wire::Unit) -> Option<Unit> {
        match unit {
            chaski_wire::Unit::Experts { layer, experts } => {
                let named = self.unit(*layer, *experts.first()?)?;
                self.experts(named).eq(experts.iter().copied()).then_some(named)
            }
            chaski_wire::Unit::Span { .. } => None,
        }
    }

    /// Bytes of a unit's matrices.
    pub fn bytes(&self, unit: Unit) -> u64 {
        self.experts(unit).len() as u64 * self.layer(unit.layer).map_or(0, |l| l.expert_bytes)
    }

    /// Experts of a layer that fit into so many bytes if each layer has as many: the slots of a device that makes its
    /// buffers before it knows what it will hold.
    pub fn even_slots(&self, memory: u64) -> u32 {
        let of_slot = self.layers.iter().map(|l| l.expert_bytes).fold(0, u64::saturating_add);
        let most = self.layers.iter().map(|l| l.n_expert).min().unwrap_or(0);
        (memory / of_slot.max(1)).min(most.into()) as u32
    }

    /// All units, by layer and block.
    pub fn units(&self) -> impl Iterator<Item = Unit> + '_ {
        self.layers.iter().flat_map(|l| {
            (0..l.n_expert.div_ceil(self.block.max(1))).map(|block| Unit { layer: l.layer, block })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_cover_every_expert_once() {
        let layers = vec![
            LayerShape { layer: 1, n_expert: 10, expert_bytes: 100 },
            LayerShape { layer: 4, n_expert: 4, expert_bytes: 7 },
        ];
        let shape = ModelShape { layers, width: 8, block: 4 };
        let units: Vec<Unit> = shape.units().collect();
        assert_eq!(units.len(), 4);
        let experts: Vec<_> =
            units.iter().flat_map(|&u| shape.experts(u).map(move |e| (u.layer, e))).collect();
        let all: Vec<_> = (0..10).map(|e| (1, e)).chain((0..4).map(|e| (4, e))).collect();
        assert_eq!(experts, all);
        assert!(all.iter().all(|&(l, e)| shape.experts(shape.unit(l, e).unwrap()).contains(&e)));
        assert_eq!(shape.bytes(Unit { layer: 1, block: 2 }), 200);
        assert_eq!(shape.unit(1, 10), None);
        assert_eq!(shape.unit(2, 0), None);
        assert!(shape.experts(Unit { layer: 1, block: u16::MAX }).is_empty());
        assert_eq!([106, 107, 321, 10_000].map(|memory| shape.even_slots(memory)), [0, 1, 3, 4]);
    }
}
