"""ggml and llama.cpp as shared libraries, called through ctypes."""
import ctypes
import subprocess
import tarfile
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int8, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path

# The version whose structs are described below, and that computed the fixtures last.
PACKAGE, VERSION, LLAMA = "@node-llama-cpp/linux-x64", "3.22.1", "0.5.0"
# GGML_TYPE_COUNT of this version: the library does not tell, and reads anything for ids behind the last.
N_TYPE = 43
FOLDER = Path(__file__).parents[2] / "target/golden"


class NoEngine(Exception):
    pass


def fetch(_=None):
    """Brings the libraries from the npm registry to target/golden. They are not part of this repository."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"]
    try:
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoEngine("`npm` is not installed (it comes with Node.js); --lib takes a folder with the libraries instead")
    if done.returncode != 0:
        raise NoEngine(f"npm pack {PACKAGE}@{VERSION}: {done.stderr.strip()}")
    archive = FOLDER / done.stdout.split()[-1]
    n = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name).name
            if member.isfile() and name.startswith("lib") and ".so" in name:
                (FOLDER / name).write_bytes(tar.extractfile(member).read())
                n += 1
    archive.unlink()
    print(f"{n} libraries of {PACKAGE} {VERSION} (llama.cpp {LLAMA}) in {FOLDER}")


def library(folder, stem):
    """A library of the folder, whose name may have a version: libllama.so, libllama.so.0, libllama.v0.5.0.so."""
    found = sorted(p for p in folder.glob(f"lib{stem}.*") if ".so" in p.name)
    if not found:
        raise NoEngine(
            f"no lib{stem}.so in {folder}: `xtask/golden/golden.py fetch` brings it from npm's registry (11 MB), "
            "--lib names another folder"
        )
    try:
        return ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL)
    except OSError as e:
        raise NoEngine(f"{found[0]}: {e}")


def function(lib, name, result, *args):
    try:
        f = getattr(lib, name)
    except AttributeError:
        raise NoEngine(f"the library has no {name}: llama.cpp {LLAMA} has it")
    f.restype, f.argtypes = result, args
    return f


class Traits(ctypes.Structure):
    """ggml_type_traits, up to the member that is needed."""
    _fields_ = [
        ("type_name", c_char_p),
        ("blck_size", c_int64),
        ("blck_size_interleave", c_int64),
        ("type_size", c_size_t),
        ("is_quantized", c_bool),
        ("to_float", ctypes.CFUNCTYPE(None, c_void_p, POINTER(c_float), c_int64)),
    ]


class Format:
    """A tensor type of ggml."""

    def __init__(self, ggml, id, traits):
        self.ggml, self.id, self.traits = ggml, id, traits
        self.name = traits.type_name.decode()
        self.block_values, self.block_bytes = traits.blck_size, traits.type_size

    def needs_importance(self):
        return self.ggml.requires_imatrix(self.id)

    def quantize(self, values, row, importance=None):
        """Blocks of values, in rows of `row`."""
        n_row = len(values) // row
        out = ctypes.create_string_buffer(len(values) // self.block_values * self.block_bytes)
        weights = (c_float * row)(*importance) if importance else None
        n = self.ggml.quantize_chunk(self.id, (c_float * len(values))(*values), out, 0, n_row, row, weights)
        if n != len(out.raw):
            raise NoEngine(f"{self.name}: ggml_quantize_chunk wrote {n} bytes, expected {len(out.raw)}")
        return out.raw

    def dequantize(self, blocks):
        n = len(blocks) // self.block_bytes * self.block_values
        out = (c_float * n)()
        self.traits.to_float(blocks, out, n)
        return list(out)


class Ggml:
    """Quantisation, from libggml-base."""

    def __init__(self, folder):
        lib = library(folder, "ggml-base")
        self.requires_imatrix = function(lib, "ggml_quantize_requires_imatrix", c_bool, c_int)
        self.quantize_chunk = function(
            lib, "ggml_quantize_chunk", c_size_t, c_int, POINTER(c_float), c_void_p, c_int64, c_int64, c_int64, POINTER(c_float)
        )
        self.version = function(lib, "ggml_version", c_char_p)().decode()
        self.lib = lib

    def formats(self):
        """Types that can be read as floats and written, by name."""
        traits_of = function(self.lib, "ggml_get_type_traits", POINTER(Traits), c_int)
        block_size = function(self.lib, "ggml_blck_size", c_int64, c_int)
        name_of = function(self.lib, "ggml_type_name", c_char_p, c_int)
        found = {}
        for id in range(N_TYPE):
            traits = traits_of(id).contents
            if name_of(id) != traits.type_name or traits.blck_size != block_size(id):
                raise NoEngine(f"ggml {self.version} lays ggml_type_traits out in another way than {LLAMA}")
            if traits.type_size and traits.to_float:
                found[traits.type_name.decode()] = Format(self, id, traits)
        return found


# llama_context_params: members, types, and the defaults that tell a layout that changed (None: anything).
CONTEXT = [
    ("n_ctx", c_uint32, 512),
    ("n_batch", c_uint32, 2048),
    ("n_ubatch", c_uint32, 512),
    ("n_seq_max", c_uint32, 1),
    ("n_rs_seq", c_uint32, 0),
    ("n_outputs_max", c_uint32, 0),
    ("n_outputs_max_per_seq", c_uint32, None),
    ("n_threads", c_int32, 4),
    ("n_threads_batch", c_int32, 4),
    ("ctx_type", c_int, 0),
    ("rope_scaling_type", c_int, -1),
    ("pooling_type", c_int, -1),
    ("attention_type", c_int, -1),
    ("flash_attn_type", c_int, -1),
    ("rope_freq_base", c_float, 0),
    ("rope_freq_scale", c_float, 0),
    ("yarn_ext_factor", c_float, -1),
    ("yarn_attn_factor", c_float, -1),
    ("yarn_beta_fast", c_float, -1),
    ("yarn_beta_slow", c_float, -1),
    ("yarn_orig_ctx", c_uint32, 0),
    ("defrag_thold", c_float, None),
    ("cb_eval", c_void_p, None),
    ("cb_eval_user_data", c_void_p, None),
    ("type_k", c_int, 1),
    ("type_v", c_int, 1),
    # More follow, which keep their defaults.
    ("rest", ctypes.c_char * 256, None),
]


class ContextParams(ctypes.Structure):
    _fields_ = [(name, kind) for name, kind, _ in CONTEXT]


class ModelParams(ctypes.Structure):
    """llama_model_params, all of whose members keep their defaults; it is smaller than this."""
    _fields_ = [("all", ctypes.c_char * 512)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    ]


class ChainParams(ctypes.Structure):
    """llama_sampler_chain_params."""
    _fields_ = [("no_perf", c_bool)]


# Arguments of `llama_sampler_init_...`.
SAMPLERS = {
    "penalties": [c_int32, c_int32, c_float, c_float, c_float],
    "dry": [c_void_p, c_float, c_float, c_int32, c_int32, POINTER(c_char_p), c_size_t],
    "top_n_sigma": [c_float],
    "top_k": [c_int32],
    "typical": [c_float, c_size_t],
    "top_p": [c_float, c_size_t],
    "min_p": [c_float, c_size_t],
    "xtc": [c_float, c_float, c_size_t, c_uint32],
    "temp": [c_float],
    "temp_ext": [c_float, c_float, c_float],
    "dist": [c_uint32],
    "adaptive_p": [c_float, c_float, c_uint32],
    "mirostat": [c_int32, c_uint32, c_float, c_float, c_int32],
    "mirostat_v2": [c_uint32, c_float, c_float],
}

Log = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
F32, F16 = 0, 1
WARN = 3


class ChatMessage(ctypes.Structure):
    _fields_ = [("role", c_char_p), ("content", c_char_p)]


class Llama:
    """Models on the CPU, from libllama."""

    def __init__(self, folder):
        base, ggml, self.lib = [library(folder, stem) for stem in ["ggml-base", "ggml", "llama"]]
        self.lines = []
        self.log = Log(self.logged)
        function(base, "ggml_log_set", None, Log, c_void_p)(self.log, None)
        function(self.lib, "llama_log_set", None, Log, c_void_p)(self.log, None)
        function(ggml, "ggml_backend_load_all_from_path", None, c_char_p)(str(folder).encode())
        function(self.lib, "llama_backend_init", None)()
        self.defaults = function(self.lib, "llama_context_default_params", ContextParams)
        self.check_layout()

    def check_layout(self):
        params = self.defaults()
        for name, _, expected in CONTEXT:
            if expected is not None and getattr(params, name) != expected:
                raise NoEngine(
                    f"libllama's default of {name} is {getattr(params, name)}, expected {expected}: another version than "
                    f"{LLAMA}, whose llama_context_params engine.py describes"
                )

    def logged(self, level, text, _):
        if level >= WARN:
            self.lines.append(text.decode("utf-8", "replace"))

    def failed(self, what):
        """The error, with the library's warnings and errors since the model."""
        return NoEngine(f"{what}: " + "; ".join(line.strip() for line in self.lines if line.strip()))

    def templates(self):
        """The names of the chat templates that are part of the library."""
        builtin = function(self.lib, "llama_chat_builtin_templates", c_int32, POINTER(c_char_p), c_size_t)
        names = (c_char_p * builtin(None, 0))()
        builtin(names, len(names))
        return [name.decode() for name in names]

    def rendered(self, template, messages, answer):
        """The text of messages, pairs of role and content, in a template; with `answer`, the beginning of one follows."""
        apply = function(
            self.lib, "llama_chat_apply_template", c_int32, c_char_p, POINTER(ChatMessage), c_size_t, c_bool, c_void_p, c_int32
        )
        chat = (ChatMessage * len(messages))(*[(role.encode(), text.encode()) for role, text in messages])
        out = ctypes.create_string_buffer(1 << 16)
        n = apply(template.encode(), chat, len(chat), answer, out, len(out))
        if not 0 <= n <= len(out):
            raise NoEngine(f"llama_chat_apply_template of {template} gives {n}")
        return out.raw[:n].decode()

    def load(self, path):
        """A model, to be freed."""
        self.lines.clear()
        params = function(self.lib, "llama_model_default_params", ModelParams)()
        load = function(self.lib, "llama_model_load_from_file", c_void_p, c_char_p, ModelParams)
        model = load(str(path).encode(), params)
        if not model:
            raise self.failed("llama.cpp refuses the model")
        return model

    def save(self, path, to):
        """Writes a model as llama.cpp saves it."""
        model = self.load(path)
        function(self.lib, "llama_model_save_to_file", None, c_void_p, c_char_p)(model, str(to).encode())
        function(self.lib, "llama_model_free", None, c_void_p)(model)

    def call(self, name, result, *args):
        return function(self.lib, name, result, *args)

    def context(self, model, n, cache=F32):
        """A context of n tokens in one batch, with a cache of this type, to be freed."""
        params = self.defaults()
        params.n_ctx = params.n_batch = params.n_ubatch = max(64, n)
        params.n_threads = params.n_threads_batch = 1
        params.flash_attn_type, params.type_k, params.type_v = 0, cache, cache
        context = self.call("llama_init_from_model", c_void_p, c_void_p, ContextParams)(model, params)
        if not context:
            raise self.failed("llama.cpp makes no context for the model")
        return context

    def decode(self, context, tokens, at=0):
        """Runs tokens of one sequence from a position on, all of them with logits."""
        batch = self.call("llama_batch_init", Batch, c_int32, c_int32, c_int32)(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, at + i, 1, 0, 1
        code = self.call("llama_decode", c_int32, c_void_p, Batch)(context, batch)
        self.call("llama_batch_free", None, Batch)(batch)
        if code != 0:
            raise self.failed(f"llama_decode returned {code}")

    def vocabulary(self, model):
        """The vocabulary of a model, and its size."""
        vocab = self.call("llama_model_get_vocab", c_void_p, c_void_p)(model)
        return vocab, self.call("llama_vocab_n_tokens", c_int32, c_void_p)(vocab)

    def logits(self, path, tokens):
        """Logits of all tokens of one sequence, in one batch with an f32 cache, and the size of the vocabulary."""
        model = self.load(path)
        n_vocab = self.vocabulary(model)[1]
        context = self.context(model, len(tokens))
        self.decode(context, tokens)
        found = self.call("llama_get_logits", POINTER(c_float), c_void_p)(context)
        found = found[: n_vocab * len(tokens)]
        self.call("llama_free", None, c_void_p)(context)
        self.call("llama_model_free", None, c_void_p)(model)
        return found, n_vocab

    def vectors(self, path, tokens, pooling):
        """Embeddings of one text by the number of a pooling: a row per token for 0, else a vector, or the scores of 4."""
        model = self.load(path)
        size = lambda name: self.call(name, c_int32, c_void_p)(model)
        n = self.call("llama_model_n_cls_out", c_uint32, c_void_p)(model) if pooling == 4 else size("llama_model_n_embd")
        params = self.defaults()
        params.n_ctx = params.n_batch = params.n_ubatch = max(64, len(tokens))
        params.n_threads = params.n_threads_batch = 1
        params.flash_attn_type, params.type_k, params.type_v, params.pooling_type = 0, F32, F32, pooling
        context = self.call("llama_init_from_model", c_void_p, c_void_p, ContextParams)(model, params)
        if not context:
            raise self.failed("llama.cpp makes no context for the model")
        self.call("llama_set_embeddings", None, c_void_p, c_bool)(context, True)
        self.decode(context, tokens)
        if pooling == 0:
            n *= len(tokens)
            found = self.call("llama_get_embeddings", POINTER(c_float), c_void_p)(context)
        else:
            found = self.call("llama_get_embeddings_seq", POINTER(c_float), c_void_p, c_int32)(context, 0)
        found = found[:n]
        self.call("llama_free", None, c_void_p)(context)
        self.call("llama_model_free", None, c_void_p)(model)
        return found

    def sampler(self, vocab, steps):
        """A chain of samplers, to be freed: each step has the name of its `llama_sampler_init_...` and the arguments."""
        params = self.call("llama_sampler_chain_default_params", ChainParams)()
        chain = self.call("llama_sampler_chain_init", c_void_p, ChainParams)(params)
        for name, *args in steps:
            if name == "dry":
                *numbers, breakers = args
                texts = (c_char_p * len(breakers))(*(text.encode() for text in breakers))
                args = [vocab, *numbers, texts, len(breakers)]
            one = self.call(f"llama_sampler_init_{name}", c_void_p, *SAMPLERS[name])(*args)
            self.call("llama_sampler_chain_add", None, c_void_p, c_void_p)(chain, one)
        return chain

    def tokens(self, vocab, text):
        """A text's tokens, those that begin a text and those spelled out in it included."""
        data = text.encode()
        out = (c_int32 * (len(data) + 8))()
        encode = self.call("llama_tokenize", c_int32, c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool)
        n = encode(vocab, data, len(data), out, len(out), True, True)
        if n < 0:
            raise self.failed(f"llama_tokenize returned {n} for {text!r}")
        return out[:n]

    def piece(self, vocab, token):
        """Bytes of a token; special ones have none."""
        out = ctypes.create_string_buffer(256)
        n = self.call("llama_token_to_piece", c_int32, c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool)(
            vocab, token, out, len(out), 0, False
        )
        if n < 0:
            raise self.failed(f"llama_token_to_piece returned {n} for token {token}")
        return out.raw[:n]

    def text(self, model, prompt, steps, n, cache=F32):
        """Up to n tokens after a prompt, each drawn by a chain of samplers that has seen the prompt, as llama-cli does it."""
        vocab, n_vocab = self.vocabulary(model)
        tokens = self.tokens(vocab, prompt)
        chain, context = self.sampler(vocab, steps(n_vocab)), self.context(model, len(tokens) + n, cache)
        accept = self.call("llama_sampler_accept", None, c_void_p, c_int32)
        for token in tokens:
            accept(chain, token)
        sample = self.call("llama_sampler_sample", c_int32, c_void_p, c_void_p, c_int32)
        is_end = self.call("llama_vocab_is_eog", c_bool, c_void_p, c_int32)
        out, at, new = b"", 0, tokens
        for _ in range(n):
            self.decode(context, new, at)
            at += len(new)
            # It accepts the token too.
            token = sample(chain, context, -1)
            if is_end(vocab, token):
                break
            out += self.piece(vocab, token)
            new = [token]
        self.call("llama_free", None, c_void_p)(context)
        self.call("llama_sampler_free", None, c_void_p)(chain)
        return out.decode("utf-8", "replace")
