//! Control messages: JSON in frames, a few a minute.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cursor::field;
use crate::error::WireError;
use crate::hex::{Digest, Hex, Nonce};
use crate::kind::Kind;
use crate::limits::{Limits, MAX_DEPTH, check};
use crate::proof::Mac;

/// A part of a model that a worker can hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Experts of a layer, in ascending order.
    Experts {
        /// Layer.
        layer: u16,
        /// Experts.
        experts: Vec<u16>,
    },
    /// Layers from `first` up to, not including, `end`, with the KV cache of their sequences.
    Span {
        /// First layer.
        first: u16,
        /// Layer behind the last one.
        end: u16,
    },
}

/// Kind of a [`Unit`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitKind {
    /// [`Unit::Experts`].
    Experts,
    /// [`Unit::Span`].
    Span,
}

/// A [feature](Hello::features) of workers that have as many slots for experts in each layer: their memory, over the
/// bytes of an expert of every layer.
pub const EVEN_LAYERS: &str = "even_layers";

/// The device of a page, as WebGPU tells it: the hub plans for it, and the page replays the plan ([`Welcome::plan`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PageCaps {
    /// Shaders may use f16.
    pub f16: bool,
    /// Smallest and largest subgroup, if shaders may use subgroups.
    pub subgroup: Option<[u32; 2]>,
    /// A software renderer.
    pub software: bool,
    /// Threads of a workgroup.
    pub max_threads: u32,
    /// Bytes of workgroup memory.
    pub max_workgroup_bytes: u32,
    /// Workgroups along each axis of a grid.
    pub max_groups: u32,
    /// Storage buffers that a shader may bind.
    pub max_bindings: u32,
    /// Bytes that it may bind of one.
    pub max_binding_bytes: u64,
    /// Bytes of a buffer.
    pub max_buffer_bytes: u64,
}

impl PageCaps {
    /// The limits that WebGPU guarantees.
    pub const LEAST: PageCaps = PageCaps {
        f16: false,
        subgroup: None,
        software: false,
        max_threads: 256,
        max_workgroup_bytes: 16 << 10,
        max_groups: 65535,
        max_bindings: 8,
        max_binding_bytes: 128 << 20,
        max_buffer_bytes: 256 << 20,
    };

    fn check(&self, kind: Kind) -> Result<(), WireError> {
        let least = PageCaps::LEAST;
        let limits = [
            ("threads of a workgroup", self.max_threads.into(), least.max_threads.into()),
            ("bytes of a workgroup", self.max_workgroup_bytes.into(), least.max_workgroup_bytes.into()),
            ("workgroups of an axis", self.max_groups.into(), least.max_groups.into()),
            ("bindings", self.max_bindings.into(), least.max_bindings.into()),
            ("bytes of a binding", self.max_binding_bytes, least.max_binding_bytes),
            ("bytes of a buffer", self.max_buffer_bytes, least.max_buffer_bytes),
        ];
        for (name, found, least) in limits {
            field(kind, name, "at least what WebGPU guarantees", found, found >= least)?;
        }
        let [min, max] = self.subgroup.unwrap_or([4, 128]);
        let is_size = |n: u32| n.is_power_of_two() && (4..=128).contains(&n);
        let is_right = is_size(min) && is_size(max) && min <= max;
        field(
            kind,
            "size of a subgroup",
            "powers of two from 4 to 128, the smaller first",
            max.into(),
            is_right,
        )
    }
}

/// HELLO: a worker introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program, which the hub compares with its own.
    pub build: String,
    /// Identity of the worker, which it keeps, so that it gets its units again when it comes back.
    pub id: Hex<16>,
    /// Name of the machine, to be shown.
    #[serde(default)]
    pub name: String,
    /// Optional parts of the protocol that the worker knows.
    #[serde(default)]
    pub features: Vec<String>,
    /// Kinds of units that it takes.
    pub units: Vec<UnitKind>,
    /// Device that computes, such as "cpu" or the name of a GPU.
    pub device: String,
    /// Digest of everything that decides the last bits of its products: build, device, precision.
    pub class: Digest,
    /// Bytes of weights that it would hold.
    pub memory: u64,
    /// Threads that compute.
    pub cores: u16,
    /// Limits of its side.
    pub limits: Limits,
    /// Random bytes.
    pub nonce: Nonce,
    /// The device of a page, which takes a plan in place of the model's header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageCaps>,
}

/// CHALLENGE: the hub proves that it has the token, and asks for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// Random bytes.
    pub nonce: Nonce,
    /// Proof of the hub; none if it has no token.
    pub proof: Option<Mac>,
}

/// PROOF: the worker proves that it has the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Proof of the worker; none if it has no token.
    pub proof: Option<Mac>,
}

/// A file or a part of it, by address and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Path at the hub.
    pub path: String,
    /// Bytes.
    pub length: u64,
    /// Digest of the bytes.
    pub sha256: Digest,
}

/// WELCOME: the hub takes the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Id of the worker at this hub.
    pub worker: u32,
    /// Digest of the skeleton, which stands for the model.
    pub model: Digest,
    /// The header of the model's file without the tokenizer: metadata and the list of tensors, as a GGUF file without
    /// data.
    pub skeleton: Blob,
    /// Experts of a unit, the last unit of a layer may have fewer.
    pub block: u16,
    /// Key for the worker's requests for weights, as a bearer token.
    pub key: Hex<16>,
    /// Limits of the connection.
    pub limits: Limits,
    /// Epoch of the assignment that follows.
    pub epoch: u32,
    /// The plan of a page, as JSON. It has the text of shaders, which other workers take from nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Blob>,
}

/// Cause of a [`Refuse`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefuseCode {
    /// The proof does not fit.
    Token,
    /// Another build, and the hub was not told to take it.
    Build,
    /// There are as many workers as the hub takes.
    Full,
    /// The worker can hold nothing of this model.
    Units,
    /// The worker was found to answer wrongly.
    Quarantine,
    /// Too many attempts from this address.
    Rate,
    /// A message that was not expected.
    Protocol,
}

/// REFUSE: the hub does not take the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refuse {
    /// Cause.
    pub code: RefuseCode,
    /// The cause in words.
    pub text: String,
}

/// Equal parts of a tensor, such as the matrices of its experts: part `i` begins at `offset + i * stride` of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorParts {
    /// Name of the tensor in the skeleton.
    pub name: String,
    /// Index in [`Assign::files`].
    pub file: u16,
    /// Byte of the file where part 0 begins.
    pub offset: u64,
    /// Bytes from one part to the next.
    pub stride: u64,
    /// Bytes of a part.
    pub length: u64,
    /// Indices of the parts, in ascending order.
    pub parts: Vec<u16>,
    /// Digest of each.
    pub sha256: Vec<Digest>,
}

impl TensorParts {
    /// First byte of the part at an index of `parts`.
    pub fn offset_of(&self, i: usize) -> u64 {
        self.offset + self.stride * u64::from(self.parts[i])
    }
}

/// ASSIGN: units that a worker should hold, the most wanted first. Several messages can make one assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// Epoch of the assignment.
    pub epoch: u32,
    /// Another message of this assignment follows.
    pub more: bool,
    /// Units.
    pub units: Vec<Unit>,
    /// Addresses of the model's files: paths at the hub, or public addresses (`https://`).
    pub files: Vec<String>,
    /// Weights of the units.
    pub tensors: Vec<TensorParts>,
}

/// HAVE: units that a worker holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Have {
    /// Epoch of the assignment.
    pub epoch: u32,
    /// Units.
    pub units: Vec<Unit>,
    /// Digest of the bits that the units make of fixed vectors: workers of one class have the same one for the same
    /// units.
    pub canary: Digest,
}

/// DRAIN: the sender leaves politely, after the tasks in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// The cause in words.
    pub text: String,
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// HELLO.
    Hello(Hello),
    /// CHALLENGE.
    Challenge(Challenge),
    /// PROOF.
    Proof(Proof),
    /// WELCOME.
    Welcome(Welcome),
    /// REFUSE.
    Refuse(Refuse),
    /// ASSIGN.
    Assign(Assign),
    /// HAVE.
    Have(Have),
    /// DRAIN.
    Drain(Drain),
}

impl Control {
    /// Kind of the frame that carries it.
    pub fn kind(&self) -> Kind {
        match self {
            Control::Hello(_) => Kind::Hello,
            Control::Challenge(_) => Kind::Challenge,
            Control::Proof(_) => Kind::Proof,
            Control::Welcome(_) => Kind::Welcome,
            Control::Refuse(_) => Kind::Refuse,
            Control::Assign(_) => Kind::Assign,
            Control::Have(_) => Kind::Have,
            Control::Drain(_) => Kind::Drain,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let json = match self {
            Control::Hello(message) => serde_json::to_vec(message),
            Control::Challenge(message) => serde_json::to_vec(message),
            Control::Proof(message) => serde_json::to_vec(message),
            Control::Welcome(message) => serde_json::to_vec(message),
            Control::Refuse(message) => serde_json::to_vec(message),
            Control::Assign(message) => serde_json::to_vec(message),
            Control::Have(message) => serde_json::to_vec(message),
            Control::Drain(message) => serde_json::to_vec(message),
        };
        json.expect("messages have text for keys and no numbers that JSON lacks")
    }

    /// Reads the payload of a frame of a control kind.
    pub(crate) fn decode(kind: Kind, payload: &[u8]) -> Result<Control, WireError> {
        check(kind, "levels of nesting", MAX_DEPTH as u64, depth(payload) as u64)?;
        let control = match kind {
            Kind::Hello => Control::Hello(parse(kind, payload)?),
            Kind::Challenge => Control::Challenge(parse(kind, payload)?),
            Kind::Proof => Control::Proof(parse(kind, payload)?),
            Kind::Welcome => Control::Welcome(parse(kind, payload)?),
            Kind::Refuse => Control::Refuse(parse(kind, payload)?),
            Kind::Assign => Control::Assign(parse(kind, payload)?),
            Kind::Have => Control::Have(parse(kind, payload)?),
            Kind::Drain => Control::Drain(parse(kind, payload)?),
            other => return Err(WireError::Kind { found: other as u8 }),
        };
        control.check()?;
        Ok(control)
    }

    /// Rules that the types do not express.
    fn check(&self) -> Result<(), WireError> {
        let kind = self.kind();
        match self {
            Control::Hello(hello) => {
                hello.page.iter().try_for_each(|page| page.check(kind))?;
                hello.limits.check(kind)
            }
            Control::Welcome(welcome) => {
                field(kind, "experts of a unit", "more than 0", welcome.block.into(), welcome.block > 0)?;
                welcome.limits.check(kind)
            }
            Control::Assign(assign) => {
                assign.units.iter().try_for_each(|unit| check_unit(kind, unit))?;
                assign.tensors.iter().try_for_each(|tensor| check_tensor(tensor, assign.files.len()))
            }
            Control::Have(have) => have.units.iter().try_for_each(|unit| check_unit(kind, unit)),
            Control::Challenge(_) | Control::Proof(_) | Control::Refuse(_) | Control::Drain(_) => Ok(()),
        }
    }
}

fn parse<T: DeserializeOwned>(kind: Kind, payload: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(payload).map_err(|e| WireError::Json { kind, message: e.to_string() })
}

/// Deepest nesting of objects and arrays in a JSON text, which need not be valid.
fn depth(text: &[u8]) -> usize {
    let (mut now, mut most) = (0usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => now += 1,
            b'}' | b']' if !in_string => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// Experts ascend, and spans have a layer.
fn check_unit(kind: Kind, unit: &Unit) -> Result<(), WireError> {
    match unit {
        Unit::Experts { experts, .. } => {
            check_ascending(kind, "expert", experts)?;
            let found = experts.len() as u64;
            field(kind, "experts of a unit", "more than 0", found, found > 0)
        }
        Unit::Span { first, end } => {
            field(kind, "end of a span", "more than its first layer", (*end).into(), first < end)
        }
    }
}

/// Parts ascend, have a digest each, and lie within 2^63 bytes.
fn check_tensor(tensor: &TensorParts, n_file: usize) -> Result<(), WireError> {
    let kind = Kind::Assign;
    check_ascending(kind, "part", &tensor.parts)?;
    let n_digest = tensor.sha256.len();
    let is_right = n_digest == tensor.parts.len() && n_digest > 0;
    field(kind, "digests of a tensor", "one for each part", n_digest as u64, is_right)?;
    let file = tensor.file.into();
    field(kind, "file of a tensor", "an index of the files", file, file < n_file as u64)?;
    let last = tensor.parts.last().map_or(0, |last| u64::from(*last));
    let end = tensor.stride.checked_mul(last).and_then(|at| at.checked_add(tensor.offset));
    let end = end.and_then(|at| at.checked_add(tensor.length)).unwrap_or(u64::MAX);
    field(kind, "end of a part", "less than 2^63", end, end < 1 << 63)
}

fn check_ascending(kind: Kind, name: &'static str, values: &[u16]) -> Result<(), WireError> {
    let descent = values.windows(2).find(|pair| pair[0] >= pair[1]);
    match descent {
        Some(pair) => field(kind, name, "more than the one before it", pair[1].into(), false),
        None => Ok(()),
    }
}
