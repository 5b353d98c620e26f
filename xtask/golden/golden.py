#!/usr/bin/env python3
"""Makes golden data with another engine: blocks of a weight format by ggml, logits of a tiny model by llama.cpp.

It needs Python 3.9 and, on Linux, nothing else: `golden.py fetch` brings the libraries. `golden.py COMMAND --help` tells more.
"""
import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

import gguf
import sampled as sampler
import saved as saver
from engine import F16, F32, FOLDER, Ggml, Llama, NoEngine, fetch
from weights import random, weights

FIXTURES = Path(__file__).parents[2] / "fixtures"
QUANTS, ARCHS, ENCODERS = FIXTURES / "quants", FIXTURES / "archs", FIXTURES / "encoders"
MODEL = Path(__file__).parents[2] / "crates/chaski/model/storyteller-Q4_K_M.gguf"
N_VALUE, N_ROW = 4096, 512
N_TOKEN = 48
# Another CPU sums in another order (1e-13), which GELU by a table in f16 turns into 1e-8.
SAME_LOGITS = 3e-8
# Random scales stay below: larger ones hide the error of everything else in a sum.
LARGEST = 1e4


class Wrong(Exception):
    pass


def read_floats(path):
    return gguf.from_floats(path.read_bytes())


# Blocks.


def random_blocks(format):
    """Random bytes as blocks, without those whose scale is not finite or too large."""
    out, n_block, seed = [], N_VALUE // format.block_values, 0
    while len(out) < n_block:
        seed += 1
        if seed > 1000 * n_block:
            raise Wrong(f"{format.name}: random bytes give no blocks with values below {LARGEST:g}")
        block = bytes(z >> 56 for z in random(format.name, format.block_bytes, seed))
        if all(abs(v) < LARGEST for v in format.dequantize(block)):
            out.append(block)
    return b"".join(out)


def relative_rmse(found, expected):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)) / sum(b * b for b in expected))


def make_blocks(format, keep):
    """Blocks, their values and the row of the index. `keep` has the blocks of an existing fixture."""
    source = read_floats(QUANTS / "source.f32")
    importance = read_floats(QUANTS / "importance.f32") if format.needs_importance() else None
    quantized = format.quantize(source, N_ROW, importance)
    rest = keep[len(quantized) :] if keep else random_blocks(format)
    blocks = quantized + rest
    values = format.dequantize(blocks)
    row = {
        "ggml_type": format.id,
        "block_values": format.block_values,
        "block_bytes": format.block_bytes,
        "quantised_values": N_VALUE,
        "random_values": N_VALUE,
        "row_values": N_ROW,
        "used_importance_matrix": importance is not None,
        "relative_rmse": round(relative_rmse(values[:N_VALUE], source), 6),
    }
    return blocks, gguf.floats(values), row


def differences(old, new):
    """Parts of a fixture that differ. The error is a sum in some order, so its last digit may."""
    (*data, row), (*new_data, new_row) = old, new
    parts = [part for part, a, b in zip(["blocks", "values"], data, new_data) if a != b]
    close = row and abs(row["relative_rmse"] - new_row["relative_rmse"]) < 2e-6
    return parts if close and row | {"relative_rmse": 0} == new_row | {"relative_rmse": 0} else [*parts, "row of the index"]


def blocks(args):
    ggml = Ggml(args.lib)
    formats, path = ggml.formats(), QUANTS / "index.json"
    index = json.loads(path.read_text())
    wrong = []
    for name in args.formats or list(index):
        if name not in formats:
            raise Wrong(f"ggml {ggml.version} has no format `{name}`; it has {', '.join(formats)}")
        files = [QUANTS / f"{name}.blocks", QUANTS / f"{name}.f32"]
        old = [*(f.read_bytes() if f.exists() else None for f in files), index.get(name)]
        new = make_blocks(formats[name], old[0])
        parts = differences(old, new)
        if args.check:
            wrong += [name] if parts else []
            print(f"{name}: {'other ' + ', '.join(parts) + ' than stored' if parts else 'as stored'}")
        elif parts:
            for file, data in zip(files, new):
                file.write_bytes(data)
            index[name] = new[2]
        if not args.check:
            print(f"{name}: {'written' if parts else 'as it was'}, relative error {new[2]['relative_rmse']}")
    if not args.check:
        rows = sorted(index.items(), key=lambda row: row[1]["ggml_type"])
        path.write_text(json.dumps(dict(rows), indent=1))
    if wrong:
        raise Wrong(f"{len(wrong)} formats differ: {', '.join(wrong)}")


# Families.


def written(spec):
    """A fixture as text, with a line for each key and tensor."""
    line = lambda value: json.dumps(value, separators=(",", ":"))
    kv = ",\n".join(f"{line(k)}:{line(v)}" for k, v in spec["kv"].items())
    tensors = ",\n".join(map(line, spec["tensors"]))
    rest = "".join(f',\n"{k}":{line(spec[k])}' for k in ["tokens", "n_vocab", "seed"] if k in spec)
    return f'{{"kv":{{\n{kv}}},\n"tensors":[\n{tensors}]{rest}}}\n'


TEST_VOCABULARY = {"tokenizer.ggml.model": {"type": "string", "value": "test"}}


def vocabulary(n):
    """Tokens without texts. llama.cpp wants them, Chaski does not."""
    return TEST_VOCABULARY | {
        "tokenizer.ggml.tokens": {"type": "array:string", "value": [f"tok_{i}" for i in range(n)]},
        "tokenizer.ggml.token_type": {"type": "array:int32", "value": [1] * n},
        "tokenizer.ggml.scores": {"type": "array:float32", "value": [0.0] * n},
    }


def n_vocab_of(tensors):
    embedding = next((t for t in tensors if t["name"] == "token_embd.weight"), None)
    if embedding is None:
        raise Wrong("no token_embd.weight, whose last dimension is the size of the vocabulary")
    return embedding["shape"][-1]


def load_spec(path):
    try:
        spec = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as e:
        raise Wrong(str(e))
    missing = [key for key in ["kv", "tensors"] if key not in spec]
    if missing:
        raise Wrong(f"no `{missing[0]}` in {path}")
    return spec


def nmse(found, expected):
    return sum((a - b) ** 2 for a, b in zip(found, expected)) / sum(b * b for b in expected)


def complete(spec):
    """Adds what follows from the rest."""
    n_vocab = n_vocab_of(spec["tensors"])
    spec.setdefault("seed", 1)
    spec.setdefault("tokens", [(z >> 53) % n_vocab for z in random("tokens", N_TOKEN, spec["seed"])])
    spec.setdefault("n_vocab", n_vocab)


def write_model(spec, path):
    """The file of a fixture."""
    kv = spec["kv"]
    if "tokenizer.ggml.tokens" not in kv:
        kv = kv | vocabulary(spec["n_vocab"])
    gguf.write(path, kv, spec["tensors"], lambda name, n: weights(name, n, spec["seed"]))


def logits(llama, spec):
    """The logits that llama.cpp computes for a fixture."""
    n_vocab = spec["n_vocab"]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.gguf"
        write_model(spec, model)
        found, n = llama.logits(model, spec["tokens"])
    if n != n_vocab:
        raise Wrong(f"n_vocab is {n_vocab}, llama.cpp finds {n} tokens")
    if not all(map(math.isfinite, found)):
        raise Wrong("logits are not finite")
    if max(found) - min(found) < 1e-3:
        raise Wrong(f"all logits are {found[0]:g}, which compares nothing")
    return found


def one_family(llama, path, args):
    """Makes or checks the fixture of one file; the result is a line that says so."""
    spec = load_spec(path)
    complete(spec)
    found = logits(llama, spec)
    to = ARCHS / f"{path.stem}.json"
    data = to.with_suffix(".logits.f32")
    if args.check:
        if not data.exists():
            raise Wrong("no logits are stored")
        e = nmse(found, read_floats(data))
        if e > args.limit:
            raise Wrong(f"NMSE {e:.1e} to the stored logits, more than {args.limit:g}")
        return f"NMSE {e:.1e}"
    if not to.exists() or json.loads(to.read_text()) != spec:
        to.write_text(written(spec))
    data.write_bytes(gguf.floats(found))
    return f"{len(spec['tokens'])} x {spec['n_vocab']} logits from {min(found):.3g} to {max(found):.3g}"


def family(args):
    each(one_family, args)


def each(make, args):
    """Makes or checks a fixture for every file."""
    llama, wrong = Llama(args.lib), []
    for path in args.specs:
        try:
            print(f"{path.stem}: {make(llama, path, args)}", flush=True)
        except (Wrong, NoEngine, gguf.Broken) as e:
            wrong.append(path.stem)
            print(f"{path.stem}: error: {e}", flush=True)
    if wrong:
        raise Wrong(f"{len(wrong)} of {len(args.specs)}: {', '.join(wrong)}")


# Numbers of poolings.
POOLINGS = {"none": 0, "mean": 1, "cls": 2, "last": 3, "rank": 4}


def one_encoder(llama, path, args):
    """Makes or checks the fixture of one file, whose `poolings` follow the rows of all tokens; the result is a line."""
    spec = load_spec(path)
    complete(spec)
    to = ENCODERS / f"{path.stem}.json"
    data = to.with_suffix(".f32")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.gguf"
        write_model(spec, model)
        ways = ["none", *spec["poolings"]]
        found = [v for way in ways for v in llama.vectors(model, spec["tokens"], POOLINGS[way])]
    if not all(map(math.isfinite, found)) or max(found) - min(found) < 1e-3:
        raise Wrong("the values are all the same, or not finite")
    if args.check:
        e = nmse(found, read_floats(data))
        if e > args.limit:
            raise Wrong(f"NMSE {e:.1e} to the stored values, more than {args.limit:g}")
        return f"NMSE {e:.1e}"
    text = written(spec)[:-2] + f',\n"poolings":{json.dumps(spec["poolings"])}}}\n'
    if not to.exists() or to.read_text() != text:
        to.write_text(text)
    data.write_bytes(gguf.floats(found))
    return f"{len(found)} values from {min(found):.3g} to {max(found):.3g}"


def encoder(args):
    each(one_encoder, args)


# Words and pieces of the vocabulary of the reranker for texts, whose special tokens follow from 100 on.
WORDS = """▁the ▁a ▁cat ▁dog ▁sat ▁on ▁mat ▁who ▁where ▁what ▁is ▁in ▁park ▁ran ▁big ▁red ▁ball ▁play ▁sun ▁rain ▁to ▁of ▁and ▁it
s ing ed er y n t e ▁? ▁. ▁, ▁! ▁caf ▁un ▁happy ▁tree ▁green""".split()
PAIRS = [
    ("Where is the cat?", "The cat sat on the mat."),
    ("Where is the cat?", "A dog ran in the park, playing!"),
    ("what is green", "Trees"),
    ("Unhappy café", "zebra and RAIN"),
]


def reranker():
    """The spec of a BERT with a vocabulary of texts and a head."""
    tokens = ["[PAD]", *WORDS]
    tokens += [f"[unused{i}]" for i in range(100 - len(tokens))] + ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    kinds = [3 if t.startswith("[") else 1 for t in tokens]
    n, ff, ctx, vocab = 32, 48, 64, len(tokens)
    number, text = lambda v: {"type": "uint32", "value": v}, lambda v: {"type": "string", "value": v}
    sizes = {"vocab_size": vocab, "context_length": ctx, "embedding_length": n, "block_count": 1, "feed_forward_length": ff}
    kv = {"general.architecture": text("bert"), "general.name": text("A reranker of random weights")}
    kv |= {f"bert.{k}": number(v) for k, v in (sizes | {"attention.head_count": 2, "pooling_type": 4}).items()}
    kv |= {"bert.attention.layer_norm_epsilon": {"type": "float32", "value": 1e-5}, "bert.attention.causal": {"type": "bool", "value": False}}
    kv |= {f"tokenizer.ggml.{k}": text("bert") for k in ["model", "pre"]} | {"tokenizer.ggml.token_type_count": number(2)}
    kv |= {"tokenizer.ggml.tokens": {"type": "array:string", "value": tokens}, "tokenizer.ggml.token_type": {"type": "array:int32", "value": kinds}}
    of = {"token_embd": [n, vocab], "token_types": [n, 2], "position_embd": [n, ctx], "cls": [n, n], "cls.output": [n, 1]}
    of |= {f"blk.0.{k}": [n, n] for k in ["attn_q", "attn_k", "attn_v", "attn_output"]} | {"blk.0.ffn_up": [n, ff], "blk.0.ffn_down": [ff, n]}
    of |= {k: [n] for k in ["token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"]}
    shapes = {f"{k}.weight": shape for k, shape in of.items()}
    shapes |= {f"{k}.bias": shape[-1:] for k, shape in of.items() if not k.startswith(("token_types", "position", "token_embd")) or k.endswith("norm")}
    return {"kv": kv, "tensors": [{"name": k, "shape": s} for k, s in shapes.items()], "n_vocab": vocab, "seed": 1}


def texts(args):
    llama, path = Llama(args.lib), ENCODERS / "reranker.gguf"
    write_model(reranker(), path)
    model = llama.load(path)
    vocab = llama.vocabulary(model)[0]
    # A text is between the tokens for its class and a separator.
    ids = lambda text: llama.tokens(vocab, text)
    rows = []
    for query, document in PAIRS:
        pair = [*ids(query), *ids(document)[1:-1]]
        mean = llama.vectors(path, ids(document), POOLINGS["mean"])
        score = llama.vectors(path, pair, POOLINGS["rank"])[0]
        rows.append({"query": query, "document": document, "tokens": pair, "score": score, "mean_of_document": list(mean)})
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    keep(f"[{lines}]\n", ENCODERS / "reranker.txt", args.check)
    print(f"{len(rows)} pairs, scores", *(f"{row['score']:.4f}" for row in rows))


def saved(args):
    found = {}
    for path in sorted(ARCHS.glob("*.json")):
        try:
            spec = load_spec(path)
            complete(spec)
            keys, logits = saver.in_process(args.lib, lambda to: write_model(spec, to), spec["tokens"])
            e = nmse(logits, read_floats(path.with_suffix(".logits.f32")))
            if e > SAME_LOGITS:
                raise Wrong(f"llama.cpp computes other logits from the file that it saved, NMSE {e:.1e}")
            found[path.stem] = keys
        except (Wrong, NoEngine, gguf.Broken) as e:
            print(f"{path.stem}: left out: {e}", flush=True)
    keep(saver.table(found), FIXTURES / "saved.json", args.check)
    print(f"{len(found)} fixtures")


def keep(text, to, check):
    """Writes a fixture, or compares it with the one that is there."""
    if not check:
        to.write_text(text)
    elif text != to.read_text():
        raise Wrong(f"{to} has another text")


def sampled(args):
    llama, texts = Llama(args.lib), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        sampler.in_f32(MODEL, Ggml(args.lib).formats(), path)
        model = llama.load(path)
        for prompt, seed, options in sampler.ROWS:
            steps = lambda n_vocab: sampler.chain(options, n_vocab, seed)
            text, rounded = (llama.text(model, prompt, steps, sampler.N_TOKEN, cache) for cache in [F32, F16])
            if text != rounded:
                raise Wrong(f"seed {seed}: a draw so near the border of two tokens that an f16 cache changes it; take another seed")
            texts.append(text)
    keep(sampler.table(texts), FIXTURES / "storyteller/sampled.json", args.check)
    print(f"{len(texts)} texts")


# Messages for chat templates, with white space around them.
CHATS = [
    [("user", "Hi")],
    [("system", " Be brief.\n"), ("user", " Why? "), ("assistant", "\nBecause. "), ("user", "And\nthen?")],
    [("user", "One"), ("assistant", "Two"), ("user", "Three"), ("assistant", "Four")],
    [("user", "Call it."), ("assistant", ""), ("tool", "{\"a\": 1}"), ("assistant", "Done."), ("system", "Now?"), ("user", "Go")],
    [("system", "First."), ("system", "Second."), ("user", "A"), ("user", "B"), ("function", "c")],
]


def templates(args):
    llama = Llama(args.lib)
    texts = {name: [[llama.rendered(name, chat, answer) for answer in (True, False)] for chat in CHATS] for name in llama.templates()}
    chats = [[{"role": role, "content": content} for role, content in chat] for chat in CHATS]
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(found, ensure_ascii=False)}" for name, found in sorted(texts.items()))
    text = f'{{"chats": {json.dumps(chats)},\n"templates": {{\n{rows}\n}}}}\n'
    keep(text, FIXTURES / "templates.json", args.check)
    print(f"{len(texts)} templates")


def resized(value, sizes):
    if isinstance(value, list):
        return [resized(v, sizes) for v in value]
    return sizes.get(value, value) if type(value) is int else value


def spec(args):
    if args.source.suffix == ".json":
        source = load_spec(args.source)
        kv, tensors = source["kv"], source["tensors"]
    else:
        kv, tensors = gguf.read_head(args.source)
    arch = kv["general.architecture"]["value"]
    sizes = dict(args.size)
    # A vocabulary of its own, and none of the model's names and licences.
    kept = {k: v for k, v in kv.items() if k.startswith(arch + ".")}
    kept = {k: {"type": v["type"], "value": resized(v["value"], sizes)} for k, v in kept.items()}
    tensors = [{"name": t["name"], "shape": resized(t["shape"], sizes)} for t in tensors]
    if args.layers is not None:
        n_layer = kept[f"{arch}.block_count"]["value"]
        kept[f"{arch}.block_count"]["value"] = args.layers
        for e in kept.values():
            if isinstance(e["value"], list) and len(e["value"]) == n_layer:
                del e["value"][args.layers :]
        layer = lambda name: int(name.split(".")[1]) if name.startswith("blk.") else -1
        tensors = [t for t in tensors if layer(t["name"]) < args.layers]
    new = args.arch or arch
    kv = {"general.architecture": {"type": "string", "value": new}}
    kv |= {new + k.removeprefix(arch): v for k, v in kept.items()}
    out = {"kv": kv | TEST_VOCABULARY, "tensors": tensors, "n_vocab": n_vocab_of(tensors), "seed": 1}
    args.out.write_text(written(out))
    n = sum(math.prod(t["shape"]) for t in tensors)
    print(f"{args.out}: {len(tensors)} tensors, {n} values" + (": make it smaller with --size and --layers" if n > 5e6 else ""))


def pair(text):
    old, _, new = text.partition("=")
    if not (old.isdigit() and new.isdigit()):
        raise argparse.ArgumentTypeError(f"`{text}`: expected OLD=NEW, two sizes")
    return int(old), int(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run, help, lib=True):
        c = commands.add_parser(run.__name__, help=help, description=help)
        c.set_defaults(run=run)
        if lib:
            c.add_argument("--lib", type=Path, default=FOLDER, metavar="DIR", help="folder of libggml and libllama")
            c.add_argument("--check", action="store_true", help="write nothing; compare with what is stored")
        return c

    command(fetch, "bring the libraries from the npm registry to target/golden", lib=False)
    c = command(blocks, "write FORMAT.blocks, FORMAT.f32 and a row of index.json in fixtures/quants")
    c.add_argument("formats", nargs="*", metavar="FORMAT", help="ggml's names, such as q4_K; without any, those in the index")
    c = command(family, "write NAME.json and NAME.logits.f32 in fixtures/archs for a NAME.json, which may lie there or elsewhere")
    c.add_argument("specs", nargs="+", type=Path, metavar="SPEC.json")
    c.add_argument("--limit", type=float, default=SAME_LOGITS, help=f"largest NMSE for --check (default {SAME_LOGITS:g})")
    c = command(encoder, "write NAME.json and NAME.f32 in fixtures/encoders: embeddings of tokens, then by each pooling that NAME.json lists")
    c.add_argument("specs", nargs="+", type=Path, metavar="SPEC.json")
    c.add_argument("--limit", type=float, default=SAME_LOGITS, help=f"largest NMSE for --check (default {SAME_LOGITS:g})")
    command(texts, "write fixtures/encoders/reranker.gguf, a BERT for texts, and reranker.txt, its scores and embeddings")
    command(saved, "write fixtures/saved.json: the metadata of all families as llama.cpp saves them again")
    command(templates, "write fixtures/templates.json: conversations in llama.cpp's chat templates")
    command(sampled, "write fixtures/storyteller/sampled.json: seeded texts of the embedded model, drawn by llama.cpp's samplers")
    c = command(spec, "begin a SPEC.json with the metadata and shapes of a GGUF file or of another family's JSON", lib=False)
    c.add_argument("source", type=Path, metavar="SOURCE")
    c.add_argument("out", type=Path, metavar="SPEC.json")
    c.add_argument("--arch", help="architecture to rename keys to")
    c.add_argument("--layers", type=int, metavar="N", help="keep the first N layers")
    c.add_argument("--size", type=pair, nargs="+", default=[], metavar="OLD=NEW", help="replace a size, in metadata and shapes")
    args = parser.parse_args()
    try:
        args.run(args)
    except (Wrong, NoEngine, gguf.Broken, OSError) as e:
        sys.exit(f"error: {e}")


if __name__ == "__main__":
    main()
