#!/usr/bin/env python3
"""Compares the ids of generated texts by the tokenizer of a folder with those of the package tokenizers, without the tokens that are
added to texts.

    cargo build -p chaski-checkpoint --example token_ids
    python compare.py TARGET/debug/examples/token_ids FOLDER ...
"""

import json
import subprocess
import sys
import unicodedata

from make import N_TEXT, text
from tokenizers import Tokenizer


def compare(command, folder):
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    texts = [text(i) for i in range(N_TEXT)]
    lines = "".join(json.dumps(t) + "\n" for t in texts)
    done = subprocess.run([command, folder], input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{folder}: {done.stderr.strip().splitlines()[-1]}")
        return
    wrong = []
    for t, line in zip(texts, done.stdout.splitlines(), strict=True):
        found, expected = json.loads(line), tokenizer.encode(t, add_special_tokens=False).ids
        if found != expected:
            wrong.append((t, found, expected))
    print(f"{folder}: {len(wrong)} of {N_TEXT} differ; {done.stderr.strip()}")
    for t, found, expected in wrong[:3]:
        at = next((i for i, pair in enumerate(zip(found, expected)) if pair[0] != pair[1]), min(len(found), len(expected)))
        piece = [tokenizer.id_to_token(i) for i in expected[at : at + 4]]
        names = [unicodedata.name(c, hex(ord(c))) for c in t if ord(c) > 0x300][:6]
        print(f"   {t!r} at {at}: {found[at:at + 4]} for {expected[at:at + 4]} {piece} {names}")


for path in sys.argv[2:]:
    compare(sys.argv[1], path)
