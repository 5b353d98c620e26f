//! Pages as workers: what a hub plans and packs for the device of each.
//!
//! A page has neither planner nor kernels: it gets a plan as data, and experts in the layout of its device.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use anyhow::{Context as _, ensure};
use chaski::experts::ExpertReplay;
use chaski::kernels::Caps;
use chaski_swarm::Unit;
use chaski_wire::{Assign, Blob, Digest, Hex, PageCaps, TensorParts};
use sha2::{Digest as _, Sha256};

use super::catalogue::{Catalogue, assignment};
use super::slots::{gpu_config, gpu_slots};

/// Path of a page's plan at a hub.
pub(crate) const PLAN: &str = "/swarm/plan";
/// Path of packed experts at a hub; the layer follows.
pub(crate) const PACKED: &str = "/swarm/packed/";
/// Longest plan, in bytes: pages take no longer one.
const LONGEST: usize = 64 << 20;
/// Refusal of a page by a hub in exact mode.
pub(crate) const NO_PAGES: &str = "pages serve hubs with --swarm-fast alone";

/// The plan for pages with equal devices.
pub(crate) struct PagePlan {
    catalogue: Arc<Catalogue>,
    replay: ExpertReplay,
    /// As pages get it.
    json: Vec<u8>,
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
        let json = serde_json::to_vec(replay.plan())?;
        ensure!(json.len() <= LONGEST, "a plan of {} bytes, at most {LONGEST} are sent", json.len());
        let digest = Hex(Sha256::digest(&json).into());
        Ok(PagePlan { catalogue, replay, json, digest, digests: Mutex::default() })
    }

    /// As pages get it.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
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
            let path = format!("{PACKED}{}", unit.layer);
            let file = message.files.iter().position(|f| *f == path).unwrap_or_else(|| {
                message.files.push(path);
                message.files.len() - 1
            });
            message.tensors.push(TensorParts {
                name: format!("experts of layer {}", unit.layer),
                file: u16::try_from(file)?,
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

/// Plans in use by device and slots.
type Plans = HashMap<(PageCaps, u32), Weak<PagePlan>>;

/// The plans of a hub's pages.
pub(crate) struct Pages {
    catalogue: Arc<Catalogue>,
    /// Other origins whose pages may join.
    pub(crate) origins: Vec<String>,
    plans: Arc<Mutex<Plans>>,
    /// By the key of a page's requests.
    by_key: Mutex<HashMap<Hex<16>, Arc<PagePlan>>>,
}

impl Pages {
    /// No pages yet.
    pub(crate) fn new(catalogue: Arc<Catalogue>, origins: Vec<String>) -> Pages {
        Pages { catalogue, origins, plans: Arc::default(), by_key: Mutex::default() }
    }

    /// The plan for a device with so much memory for experts.
    ///
    /// # Errors
    /// Too little memory, or a model that cannot be planned for the device.
    pub(crate) async fn plan(&self, page: PageCaps, memory: u64) -> anyhow::Result<Arc<PagePlan>> {
        let (catalogue, plans) = (self.catalogue.clone(), self.plans.clone());
        let make = move || {
            let n_slot = gpu_slots(catalogue.graph(), catalogue.shape(), memory)?;
            // Held until the plan is there: tabs that join together have the same one.
            let mut plans = lock(&plans);
            if let Some(plan) = plans.get(&(page, n_slot)).and_then(Weak::upgrade) {
                return Ok(plan);
            }
            plans.retain(|_, plan| plan.strong_count() > 0);
            let plan = Arc::new(PagePlan::new(catalogue, &page, n_slot)?);
            plans.insert((page, n_slot), Arc::downgrade(&plan));
            Ok(plan)
        };
        tokio::task::spawn_blocking(make).await?
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
