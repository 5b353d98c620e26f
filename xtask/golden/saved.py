"""The metadata that llama.cpp writes when it saves a model again: every key that it knows, mostly at its default."""
import json
import math
import multiprocessing
import os
import tempfile
from collections import Counter
from pathlib import Path

import gguf
from engine import Llama, NoEngine


GONE = {"type": "none", "value": None}


def saved(lib, write, tokens):
    """Keys of the family in a model as it was written and as llama.cpp saves it, and the logits of the saved file."""
    llama = Llama(lib)
    with tempfile.TemporaryDirectory() as folder:
        model, again = Path(folder) / "model.gguf", Path(folder) / "saved.gguf"
        write(model)
        llama.save(model, again)
        before, after = gguf.read_head(model)[0], gguf.read_head(again)[0]
        family = after["general.architecture"]["value"] + "."
        new = {k: v for k, v in after.items() if k.startswith(family) and before.get(k) != v}
        new |= {k: GONE for k in before if k.startswith(family) and k not in after}
        return {k.removeprefix(family): v for k, v in new.items()}, llama.logits(again, tokens)[0]


def in_process(*args):
    """`saved` in a process of its own, since llama.cpp ends the process for families that it does not save."""

    def run(sender):
        # An abort needs no debugger.
        os.environ["GGML_NO_BACKTRACE"] = "1"
        try:
            sender.send(saved(*args))
        except (NoEngine, gguf.Broken) as e:
            sender.send(str(e))

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(sender,))
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        found = "llama.cpp ended the process"
    process.join()
    if isinstance(found, str):
        raise NoEngine(found)
    return found


def finite(entry):
    """An entry whose number JSON has: infinity becomes text."""
    value = entry["value"]
    return entry | {"value": str(value)} if isinstance(value, float) and math.isinf(value) else entry


def table(found):
    """The keys of all fixtures as JSON: `most` has the entry that most of them have, `of` those of a fixture that differ, null
    where it has none."""
    text = lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False)
    found = {name: {key: finite(entry) for key, entry in new.items()} for name, new in found.items()}
    keys = sorted({key for new in found.values() for key in new})
    most = {key: json.loads(Counter(text(new.get(key)) for new in found.values()).most_common(1)[0][0]) for key in keys}
    of = {name: {key: new.get(key) for key in keys if new.get(key) != most[key]} for name, new in sorted(found.items())}
    lines = lambda entries: ",\n".join(f"{text(key)}:{text(value)}" for key, value in entries.items())
    return f'{{"most":{{\n{lines(most)}}},\n"of":{{\n{lines(of)}}}}}\n'
