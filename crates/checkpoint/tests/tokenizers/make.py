#!/usr/bin/env python3
"""Makes the golden data of generated_texts.rs with the packages tokenizers 0.23 and sentencepiece 0.2.

    python make.py CORPUS     trains the vocabularies anew (bytes.json, pieces.model), then everything
    python make.py            only the ids

cases.json has the pieces that texts are made of and, for each case, the parts of tokenizer.json besides its model, with
hashes of the ids of 10,000 texts: one for each 100.
"""

import hashlib
import io
import json
import os
import sys

import sentencepiece
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
N_TEXT, N_BLOCK = 10_000, 100
MASK = (1 << 64) - 1

PIECES = [
    " ", " ", " ", "  ", "   ", "\n", "\n\n", " \n", "\r\n", "\t", "\u00a0", "\u3000", "\u0085",
    "a", "b", "the", " the", "The", "HELLO", "World", "camelCase", "HTTPServer", "ing", " of", " and", "tion",
    "it's", "IT'S", "we'll", "don't", "'", "'s", "''", "I'M", "they'RE",
    "0", "7", "42", "123", "1234", "1000000", "3.14", "\u0663\u0664\u0665\u0666", "\u00bd", "\u00b2", "\u2167",
    ".", ",", "!", "?!", "...", "-", "--", "_", "=", "==", "+", "$", "^", "`", "|", "~", "<", ">", "</", "{}", "();", "//", "#", "\"",
    "\u00e9", "e\u0301", "\u00fc", "u\u0308ber", "\u00df", "\u0130", "\u01c5", "\u00aa", "\u03a9", "\u0391\u03b2\u03b3", "\u0416\u0437\u0438",
    "\u4f60\u597d", "\u3002", "\u3072\u3089", "\u30ab\u30bf", "\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab", "\u0e44\u0e17\u0e22", "\u1780\u17b6", "\u05d0\u05d1", "\u0627\u0628\u064b", "\u0915\u093f",
    "\U0001f600", "\U0001f44d\U0001f3fd", "\u200d", "\ufe0f", "\u2581", "\ufb01", "\uff21", "\u2014", "\u2026", "\u201c", "\u201d",
    "<|begin|>", "<|end|>", "<think>", "x", "zz", "def f(x):", "    return", "https://a.b/c?d=e",
]


def text(index):
    """The text with this number: some pieces, drawn by xorshift64*."""
    state = (0x9E3779B97F4A7C15 * (index + 1)) & MASK

    def below(n):
        nonlocal state
        state ^= state >> 12
        state ^= (state << 25) & MASK
        state ^= state >> 27
        return (((state * 0x2545F4914F6CDD1D) & MASK) >> 33) % n

    return "".join(PIECES[below(len(PIECES))] for _ in range(1 + below(16)))


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def split(*expressions):
    steps = [{"type": "Split", "pattern": {"Regex": e}, "behavior": "Isolated", "invert": False} for e in expressions]
    return sequence(*steps, byte_level(False))


def replace(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


ANY_CASE = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = ANY_CASE + r"|[^\r\n\p{L}\p{N}]?\p{L}+|"
SMALL = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
CAPITALS = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
BY_CASE = LINES.replace(r"[\r\n]*", r"[\r\n/]*")
DEEPSEEK = (
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)
BEGIN = {
    "type": "Sequence",
    "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|begin|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<|begin|>": {"id": "<|begin|>", "ids": [500], "tokens": ["<|begin|>"]}},
        },
    ],
}
NFC = {"type": "NFC"}

# Name, rule that is expected (None: made of the expressions), parts of tokenizer.json.
BYTE_CASES = [
    ("gpt-2", "gpt-2", {"pre_tokenizer": byte_level(True)}),
    ("digits", "starcoder", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, byte_level(True))}),
    ("llama-bpe", "llama-bpe", {"pre_tokenizer": split(WORDS + r"\p{N}{1,3}" + LINES), "post_processor": BEGIN, "ignore_merges": True}),
    ("qwen2", "qwen2", {"pre_tokenizer": split(WORDS + r"\p{N}" + LINES), "normalizer": NFC}),
    ("qwen35", "qwen35", {
        "pre_tokenizer": split(ANY_CASE + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        "normalizer": NFC}),
    ("gpt-4o", "gpt-4o", {
        "pre_tokenizer": split(f"{SMALL}{ANY_CASE}?|{CAPITALS}{ANY_CASE}?|" + r"\p{N}{1,3}" + BY_CASE), "ignore_merges": True}),
    ("tekken", "tekken", {"pre_tokenizer": split(f"{SMALL}|{CAPITALS}|" + r"\p{N}" + BY_CASE), "ignore_merges": True}),
    ("deepseek-v3", "deepseek-v3", {"pre_tokenizer": split(r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", DEEPSEEK)}),
    ("own words", None, {"pre_tokenizer": split(r"[A-Z][a-z]*|[a-z]+|\p{N}{2}| ?[^\s\w]+|\s+(?!\S)|\s+")}),
    ("own letters", None, {"pre_tokenizer": split(r"\p{L}+|\p{Nd}+\p{M}*|[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")}),
    ("own lines", None, {"pre_tokenizer": split(r"[^\n]+\n*", "(?i:the)| +$|\\d"), "normalizer": {"type": "NFKC"}}),
]
PIECE_CASES = [
    ("llama", {
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, replace(" ", "\u2581")]},
        "pre_tokenizer": None}),
    ("gemma", {
        "normalizer": replace(" ", "\u2581"),
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}}),
]


def train(corpus):
    lines = corpus.splitlines()
    tokenizer = Tokenizer(models.BPE())
    expression = WORDS + r"\p{N}{1,3}" + LINES
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(expression), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    dump("bytes.json", model)
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=600, model_type="bpe", byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.9995, minloglevel=2,
        pad_id=-1, unk_id=0, bos_id=1, eos_id=2, hard_vocab_limit=False,
    )
    with open(os.path.join(HERE, "pieces.model"), "wb") as file:
        file.write(out.getvalue())


def pieces_model(processor):
    """The model of tokenizer.json for SentencePiece, as transformers makes it: every pair that makes a piece is a merge."""
    n = processor.GetPieceSize()
    vocab = {processor.IdToPiece(i): i for i in range(n)}
    merges = []
    for piece, index in vocab.items():
        if index < 3 or processor.IsByte(index):
            continue
        pairs = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges += [(processor.GetScore(index), vocab[left], vocab[right], left, right) for left, right in pairs]
    merges.sort(key=lambda m: (-m[0], m[1], m[2]))
    return {
        "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
        "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": [[m[3], m[4]] for m in merges],
    }


def added(tokens):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [{"id": i, "content": t, "special": t != "<think>", **flags} for i, t in tokens]


def blocks(encode):
    """The first 8 digits of a hash of the ids of each 100 texts."""
    out = []
    for start in range(0, N_TEXT, N_BLOCK):
        lines = "".join(json.dumps(encode(text(i)), separators=(",", ":")) + "\n" for i in range(start, start + N_BLOCK))
        out.append(hashlib.sha256(lines.encode()).hexdigest()[:8])
    return " ".join(out)


def dump(name, value, indent=None):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        separators = (",", ": ") if indent is not None else (",", ":")
        json.dump(value, file, ensure_ascii=False, indent=indent, separators=separators)
        file.write("\n")


def main():
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            train(file.read())
    with open(os.path.join(HERE, "bytes.json"), encoding="utf-8") as file:
        bytes_model = json.load(file)
    processor = sentencepiece.SentencePieceProcessor(model_file=os.path.join(HERE, "pieces.model"))
    n = processor.GetPieceSize()
    pieces = pieces_model(processor)
    dump("pieces.json", pieces)
    base = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None, "decoder": None}
    cases = []

    def case(name, model_file, model, tokens, parts, rule):
        parts = dict(parts)
        model = dict(model, ignore_merges=parts.pop("ignore_merges", False))
        file = {**base, **parts, "added_tokens": added(tokens), "model": model}
        tokenizer = Tokenizer.from_str(json.dumps(file))
        hashes = blocks(lambda t: tokenizer.encode(t).ids)
        ignore = model["ignore_merges"]
        cases.append({"name": name, "model": model_file, "rule": rule, "ignore_merges": ignore, "added": tokens, "parts": parts, "ids": hashes})

    specials = ["<|begin|>", "<|end|>", "<think>"]
    for name, rule, parts in BYTE_CASES:
        case(name, "bytes.json", bytes_model, [[500 + i, t] for i, t in enumerate(specials)], parts, rule)
    for name, parts in PIECE_CASES:
        tokens = [[0, "<unk>"], [1, "<s>"], [2, "</s>"]] + [[n + i, t] for i, t in enumerate(specials)]
        case(name, "pieces.json", pieces, tokens, parts, None)
    # sentencepiece itself has no added tokens.
    plain = blocks(lambda t: processor.encode(t.replace("<|", "<").replace("<think>", "think")))
    cases.append({"name": "sentencepiece", "model": "pieces.model", "ids": plain})
    dump("cases.json", {"pieces": PIECES, "cases": cases}, indent=0)


if __name__ == "__main__":
    main()
