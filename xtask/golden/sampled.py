"""Seeded texts of the embedded model by llama.cpp's samplers, for many options of their chain."""
import json
import struct

import gguf

# Names and values of llama.cpp's own chain, where a row gives no other.
DEFAULTS = {
    "samplers": "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
    "min_keep": 0,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "typical_p": 1.0,
    "temp": 0.8,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "penalty_last_n": 64,
    "penalty_repeat": 1.0,
    "penalty_freq": 0.0,
    "penalty_present": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "dry_sequence_breakers": ["\n", ":", "\"", "*"],
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.1,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.9,
}
# All filters off, so that what a row adds decides.
BARE = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
STORY = "Once upon a time"
CHAT = "<|user|>\nTell me a story about a fox who lost a kite.<|end|>\n<|assistant|>\n"
# It says things twice, for penalties on what was said.
AGAIN = "The cat sat on the mat. The cat sat on the rug. The cat sat on the"
N_TOKEN = 24

# Prompt, seed, options. Texts stay the same if the cache rounds to f16. Seeds 11, 12, 19, 35 and 37 were replaced because they
# change then: some draw lands so near the border of two tokens that the order of sums in an engine could decide.
ROWS = [
    (STORY, 1, {}),
    (CHAT, 2, {}),
    (AGAIN, 4294967294, {"temp": 1.0}),
    (STORY, 3, {"temp": 0.5}),
    (STORY, 4, {"temp": 1.5}),
    (STORY, 5, BARE | {"temp": 1.0}),
    (CHAT, 6, BARE | {"temp": 1.3}),
    (STORY, 7, {"top_k": 5, "top_p": 1.0, "min_p": 0.0, "temp": 1.2}),
    (STORY, 8, {"top_k": 64, "temp": 1.4}),
    (STORY, 9, {"top_k": 1}),
    (STORY, 10, BARE | {"top_k": 200, "temp": 1.5}),
    (STORY, 111, BARE | {"top_p": 0.6, "temp": 1.5}),
    (STORY, 112, BARE | {"top_p": 0.9, "temp": 1.1}),
    (STORY, 13, BARE | {"min_p": 0.02, "temp": 1.2}),
    (STORY, 14, BARE | {"min_p": 0.3, "temp": 1.5, "min_keep": 3}),
    (STORY, 15, BARE | {"typical_p": 0.7, "temp": 1.0}),
    (CHAT, 16, {"typical_p": 0.4, "temp": 1.2}),
    (AGAIN, 17, {"penalty_repeat": 1.3}),
    (AGAIN, 18, {"penalty_freq": 0.8, "penalty_last_n": 16, "temp": 1.0}),
    (AGAIN, 119, {"penalty_present": 1.5, "penalty_last_n": 128, "temp": 0.6}),
    (AGAIN, 20, {"penalty_repeat": 1.1, "penalty_freq": 0.3, "penalty_present": 0.4, "temp": 1.2}),
    (AGAIN, 21, {"dry_multiplier": 0.8}),
    (AGAIN, 22, {"dry_multiplier": 2.0, "dry_base": 1.2, "dry_allowed_length": 1, "dry_penalty_last_n": 32, "temp": 1.1}),
    (AGAIN, 23, {"dry_multiplier": 1.5, "dry_sequence_breakers": [" sat", "."], "penalty_repeat": 1.05}),
    (STORY, 24, {"xtc_probability": 0.5}),
    (CHAT, 25, {"xtc_probability": 1.0, "xtc_threshold": 0.05, "temp": 0.7}),
    (STORY, 26, BARE | {"xtc_probability": 0.3, "xtc_threshold": 0.2, "temp": 0.9}),
    (STORY, 27, BARE | {"top_n_sigma": 1.0, "temp": 1.5}),
    (CHAT, 28, {"top_n_sigma": 2.0, "temp": 1.3}),
    (STORY, 29, {"mirostat": 1, "temp": 1.0}),
    (CHAT, 30, {"mirostat": 1, "mirostat_tau": 2.0, "mirostat_eta": 0.3, "temp": 0.8}),
    (STORY, 31, {"mirostat": 2, "temp": 1.0}),
    (CHAT, 32, {"mirostat": 2, "mirostat_tau": 2.0, "mirostat_eta": 0.5, "temp": 1.2}),
    (STORY, 33, {"dynatemp_range": 0.5, "temp": 1.0}),
    (CHAT, 34, BARE | {"dynatemp_range": 0.7, "dynatemp_exponent": 2.0, "temp": 0.8}),
    (STORY, 135, {"samplers": "temperature;top_k;top_p;min_p", "temp": 1.5}),
    (STORY, 36, {"samplers": "top_p;temperature", "temp": 1.3, "top_p": 0.8}),
    (CHAT, 137, {"samplers": "temperature;typ_p;xtc;top_k", "typical_p": 0.8, "xtc_probability": 0.4, "temp": 1.2}),
    (AGAIN, 38, {"samplers": "min_p;top_k;temperature;penalties;dry", "penalty_repeat": 1.4, "dry_multiplier": 1.0}),
    (
        AGAIN,
        39,
        {
            "penalty_repeat": 1.1,
            "dry_multiplier": 0.5,
            "top_n_sigma": 3.0,
            "typical_p": 0.95,
            "xtc_probability": 0.2,
            "dynatemp_range": 0.3,
            "temp": 1.1,
        },
    ),
    (STORY, 40, {"samplers": "min_p;temperature;adaptive_p", "adaptive_target": 0.3}),
    (AGAIN, 41, {"samplers": "min_p;temperature;adaptive_p", "min_p": 0.3}),
    (STORY, 42, {"mirostat": 2, "mirostat_tau": 3.0, "dynatemp_range": 0.5, "temp": 0.9}),
    (STORY, 43, {"top_k": 3, "min_keep": 5, "temp": 1.3}),
    (STORY, 44, BARE | {"top_n_sigma": 3.0, "temp": 1.2}),
    (STORY, 45, {"samplers": "top_n_sigma;temperature", "top_n_sigma": 1.5, "dynatemp_range": 0.5, "temp": 1.0}),
    (AGAIN, 46, {"samplers": "temperature;penalties;top_p", "penalty_repeat": 1.2, "temp": 1.3}),
]


def chain(options, n_vocab, seed):
    """llama.cpp's samplers for a row in their order: names of `llama_sampler_init_...` with arguments, the draw last."""
    o = DEFAULTS | options
    if o["mirostat"]:
        limits = [o["mirostat_tau"], o["mirostat_eta"]]
        draw = ("mirostat", n_vocab, seed, *limits, 100) if o["mirostat"] == 1 else ("mirostat_v2", seed, *limits)
        return [("temp", o["temp"]), draw]
    keep = o["min_keep"]
    of = {
        "penalties": ("penalties", n_vocab, *(o[f"penalty_{x}"] for x in ["last_n", "repeat", "freq", "present"])),
        "dry": (
            "dry",
            *(o[f"dry_{x}"] for x in ["multiplier", "base", "allowed_length", "penalty_last_n", "sequence_breakers"]),
        ),
        "top_n_sigma": ("top_n_sigma", o["top_n_sigma"]),
        "top_k": ("top_k", o["top_k"]),
        "typ_p": ("typical", o["typical_p"], keep),
        "top_p": ("top_p", o["top_p"], keep),
        "min_p": ("min_p", o["min_p"], keep),
        "xtc": ("xtc", o["xtc_probability"], o["xtc_threshold"], keep, seed),
        "temperature": ("temp_ext", o["temp"], o["dynatemp_range"], o["dynatemp_exponent"]),
    }
    names = o["samplers"].split(";")
    adaptive = ("adaptive_p", o["adaptive_target"], o["adaptive_decay"], seed)
    # It draws, wherever it stands.
    draw = adaptive if "adaptive_p" in names else ("dist", seed)
    return [*(of[name] for name in names if name != "adaptive_p"), draw]


def in_f32(path, formats, to):
    """Writes a model with all its tensors as f32, so that no engine rounds what it multiplies with them."""
    kv, tensors, data = gguf.read(path)
    by_id = {format.id: format for format in formats.values()}

    def values(name, n):
        kind, offset = next((t["type"], t["offset"]) for t in tensors if t["name"] == name)
        if kind == 0:
            return struct.unpack_from(f"<{n}f", data, offset)
        format = by_id[kind]
        return format.dequantize(data[offset : offset + n // format.block_values * format.block_bytes])

    gguf.write(to, kv, tensors, values)


def table(texts):
    """The rows with their texts as JSON, one a line."""
    line = lambda value: json.dumps(value, separators=(",", ":"))
    rows = [
        line({"prompt": prompt, "seed": seed, "options": options, "n_token": N_TOKEN, "text": text})
        for (prompt, seed, options), text in zip(ROWS, texts)
    ]
    return "[\n" + ",\n".join(rows) + "]\n"
