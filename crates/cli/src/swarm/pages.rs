//! Pages as workers: what a hub plans and packs for the device of each.
//!
//! A page has neither planner nor kernels: it gets a plan as data, and experts in the layout of its device.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, ensure};
use axum::body::Bytes;
use chaski::experts::ExpertReplay;
use chaski::kernels::Caps;
use chaski_swarm::Unit;
use chaski_wire::{Assign, Blob, Digest, Hex, PageCaps, Refuse, RefuseCode, TensorParts};
use sha2::{Digest as _, Sha256};

use super::catalogue::{Catalogue, assignment, file_of};
use super::slots::{gpu_config, gpu_slots};

/// Path of a page's plan at a hub.
pub(crate) const PLAN: &str = "/swarm/plan";
/// Path of packed experts at a hub; the layer follows.
pub(crate) const PACKED: &str = "/swarm/packed/";
/// Longest plan, in bytes: pages take no longer one.
const LONGEST: usize = 64 << 20;
/// Plans at once. A page says what its device can, so it could ask for any number.
const MOST: usize = 32;
/// Plans that are kept without a page, for one that comes back.
const IDLE: usize = 4;
/// Refusal of a page by a hub in exact mode.
pub(crate) const NO_PAGES: &str = "pages serve hubs with --swarm-fast alone";

/// The plan for pages with equal devices.
pub(crate) struct PagePlan {
    catalogue: Arc<Catalogue>,
    replay: ExpertReplay,
    /// As pages get it.
    json: Bytes,
    digest: Digest,
    /// Digests of packed experts by layer and expert, each computed once.
    digests: Mutex<HashMap<(u16, u16), Digest>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The capabilities of a page's device as the planner takes them.
fn caps(page: &PageCaps) -> Caps {
    Caps {
        subgroup: page.subgroup.map(|[min, max]| (min, max)),
        f16: page.f16,
        max_threads: page.max_threads,
        max_workgroup_bytes: page.max_workgroup_bytes,
        max_binding_bytes: page.max_binding_bytes.min(page.max_buffer_bytes),
        max_groups: page.max_groups,
        software: page.software,
        // Browsers run shaders on CPUs with few threads per register, where barriers are expensive.
        alone: page.software && page.subgroup.is_some(),
        ..Caps::base()
    }
}

impl PagePlan {
    fn new(catalogue: Arc<Catalogue>, page: &PageCaps, n_slot: u32) -> anyhow::Result<PagePlan> {
        let (caps, config) = (caps(page), gpu_config(n_slot));
        let made = ExpertReplay::new(catalogue.graph(), &caps, &config, catalogue.model());
        let replay = pollster::block_on(made).context("experts cannot be planned for this page")?;
        let (found, most) = (replay.plan().max_bindings(), page.max_bindings);
        ensure!(found <= most as usize, "a shader binds {found} buffers, the page's device {most}");
        let json = Bytes::from(serde_json::to_vec(replay.plan())?);
        ensure!(json.len() <= LONGEST, "a plan of {} bytes, at most {LONGEST} are sent", json.len());
        let digest = Hex(Sha256::digest(&json).into());
        Ok(PagePlan { catalogue, replay, json, digest, digests: Mutex::default() })
    }

    /// As pages get it.
    pub(crate) fn json(&self) -> Bytes {
        self.json.clone()
    }

    /// Where the plan is.
    pub(crate) fn blob(&self) -> Blob {
        Blob { path: PLAN.to_owned(), length: self.json.len() as u64, sha256: self.digest }
    }

    /// ASSIGN messages for units, as [`Catalogue::assignment`] has them for other workers: the parts of a tensor are
    /// the packed experts of a layer.
    ///
    /// # Errors
    /// Bytes that cannot be read.
    pub(crate) fn assignment(
        &self,
        epoch: u32,
        units: &[Unit],
        known: &mut BTreeSet<Unit>,
    ) -> anyhow::Result<Vec<Assign>> {
        assignment(self.catalogue.shape(), epoch, units, known, |unit, experts, message| {
            let length = self.expert_bytes(unit.layer)?;
            let sha256 = experts.iter().map(|e| self.digest_of(unit.layer, *e));
            let sha256 = sha256.collect::<anyhow::Result<Vec<Digest>>>()?;
            let file = file_of(&mut message.files, format!("{PACKED}{}", unit.layer))?;
            message.tensors.push(TensorParts {
                name: format!("experts of layer {}", unit.layer),
                file,
                offset: 0,
                stride: length,
                length,
                parts: experts.to_vec(),
                sha256,
            });
            Ok(())
        })
    }

    fn expert_bytes(&self, layer: u16) -> anyhow::Result<u64> {
        self.replay.expert_bytes(layer).with_context(|| format!("layer {layer} has no experts"))
    }

    fn digest_of(&self, layer: u16, expert: u16) -> anyhow::Result<Digest> {
        let known = lock(&self.digests).get(&(layer, expert)).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let digest = Hex(Sha256::digest(self.pack(layer, expert)?).into());
        lock(&self.digests).insert((layer, expert), digest);
        Ok(digest)
    }

    fn pack(&self, layer: u16, expert: u16) -> anyhow::Result<Vec<u8>> {
        let packed = self.replay.pack(layer, expert, self.catalogue.model());
        pollster::block_on(packed).with_context(|| format!("expert {expert} of layer {layer}"))
    }

    /// A packed expert, if a range is that of one, and it belongs to one of some units.
    pub(crate) fn range(
        &self,
        units: &BTreeSet<Unit>,
        layer: u16,
        range: &std::ops::Range<u64>,
    ) -> Option<anyhow::Result<Vec<u8>>> {
        let length = self.replay.expert_bytes(layer)?;
        let is_one = range.start % length == 0 && range.end - range.start == length;
        let expert = u16::try_from(range.start / length).ok().filter(|_| is_one)?;
        let unit = self.catalogue.shape().unit(layer, expert)?;
        units.contains(&unit).then(|| self.pack(layer, expert))
    }
}

/// Plans by device and slots, the last used at the end.
struct Plans<K, P>(Vec<(K, Arc<P>)>);

impl<K: PartialEq, P> Plans<K, P> {
    /// The plan of a key, which is made if it is not there; `None` if too many are in use.
    fn get<E>(&mut self, key: K, make: impl FnOnce() -> Result<P, E>) -> Result<Option<Arc<P>>, E> {
        let found = self.0.iter().position(|(k, _)| *k == key).map(|at| self.0.remove(at).1);
        self.forget(IDLE);
        if found.is_none() && self.0.len() >= MOST {
            self.forget(0);
        }
        if found.is_none() && self.0.len() >= MOST {
            return Ok(None);
        }
        let plan = found.map_or_else(|| make().map(Arc::new), Ok)?;
        self.0.push((key, plan.clone()));
        Ok(Some(plan))
    }

    /// Forgets plans of no page but the last `n`.
    fn forget(&mut self, n: usize) {
        let is_idle = |(_, plan): &(K, Arc<P>)| Arc::strong_count(plan) == 1;
        let mut excess = self.0.iter().filter(|p| is_idle(p)).count().saturating_sub(n);
        self.0.retain(|p| {
            let is_excess = excess > 0 && is_idle(p);
            excess -= usize::from(is_excess);
            !is_excess
        });
    }
}

/// The plans of a hub's pages.
pub(crate) struct Pages {
    catalogue: Arc<Catalogue>,
    /// Other origins whose pages may join.
    pub(crate) origins: Vec<String>,
    plans: Arc<Mutex<Plans<(PageCaps, u32), PagePlan>>>,
    /// By the key of a page's requests.
    by_key: Mutex<HashMap<Hex<16>, Arc<PagePlan>>>,
}

impl Pages {
    /// No pages yet.
    pub(crate) fn new(catalogue: Arc<Catalogue>, origins: Vec<String>) -> Pages {
        let plans = Arc::new(Mutex::new(Plans(Vec::new())));
        Pages { catalogue, origins, plans, by_key: Mutex::default() }
    }

    /// The plan for a device with so much memory for experts. It is made even if nobody waits for it any more, and kept
    /// for the next attempt.
    ///
    /// # Errors
    /// Too little memory, a model that cannot be planned for the device, or too many plans.
    pub(crate) async fn plan(&self, page: PageCaps, memory: u64) -> Result<Arc<PagePlan>, Refuse> {
        let (catalogue, plans) = (self.catalogue.clone(), self.plans.clone());
        let make = move || {
            let n_slot = gpu_slots(catalogue.graph(), catalogue.shape(), memory)?;
            // Held until the plan is there: tabs that join together have the same one.
            lock(&plans).get((page, n_slot), || PagePlan::new(catalogue, &page, n_slot))
        };
        let made = tokio::task::spawn_blocking(make).await;
        match made.unwrap_or_else(|panic| Err(panic.into())) {
            Ok(Some(plan)) => Ok(plan),
            Ok(None) => {
                let text = format!("the hub has plans for {MOST} kinds of devices and memories in use");
                Err(Refuse { code: RefuseCode::Full, text })
            }
            Err(error) => Err(Refuse { code: RefuseCode::Units, text: format!("{error:#}") }),
        }
    }

    /// The plan of the page with a key.
    pub(crate) fn of(&self, key: &Hex<16>) -> Option<Arc<PagePlan>> {
        lock(&self.by_key).get(key).cloned()
    }

    pub(crate) fn keep(&self, key: Hex<16>, plan: Arc<PagePlan>) {
        lock(&self.by_key).insert(key, plan);
    }

    pub(crate) fn forget(&self, key: &Hex<16>) {
        lock(&self.by_key).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(plans: &mut Plans<usize, usize>, key: usize) -> Option<Arc<usize>> {
        plans.get::<()>(key, || Ok(key)).unwrap()
    }

    #[test]
    fn a_plan_is_kept_for_a_page_that_comes_back_and_their_number_is_bounded() {
        let mut plans = Plans(Vec::new());
        assert_eq!(plans.get(0, || Err("no plan")), Err("no plan"));
        drop(get(&mut plans, 0));
        let again = plans.get(0, || Err("it is made again")).unwrap();
        drop(again);
        // Without a page few are kept, the last ones.
        (0..10).for_each(|key| drop(get(&mut plans, key)));
        let kept: Vec<usize> = plans.0.iter().map(|(key, _)| *key).collect();
        assert_eq!(kept, [5, 6, 7, 8, 9]);
        let used: Vec<Arc<usize>> = (100..100 + MOST).map(|key| get(&mut plans, key).unwrap()).collect();
        assert_eq!((plans.0.len(), get(&mut plans, 0)), (MOST, None));
        assert_eq!(get(&mut plans, 100), Some(used[0].clone()), "one that is in use is there");
        drop(used);
        assert_eq!(get(&mut plans, 0).as_deref(), Some(&0));
        assert_eq!(plans.0.len(), IDLE + 1);
    }
}
