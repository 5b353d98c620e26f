#!/usr/bin/env python3
"""Writes the golden frames beside it, byte by byte from the tables of docs/swarm.md, without the crate; and fuzz/seeds/wire."""

import hashlib
import hmac
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
SEEDS = HERE / "../../../../fuzz/seeds/wire"


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def frame(kind, payload, flags=0, task=0, epoch=0, layer=0, fragment=0):
    def head(crc):
        return struct.pack("<4sBBHIIQIHH", b"CHSW", 1, kind, flags, len(payload), crc, task, epoch, layer, fragment)

    return head(crc32c(head(0) + payload) if flags & 4 else 0) + payload


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def f16(*values):
    return struct.pack(f"<{len(values)}e", *values)


def bf16(*values):
    return b"".join(f32(v)[2:] for v in values)


def u16(*values):
    return struct.pack(f"<{len(values)}H", *values)


def task_head(n_col, n_pair, width, dtype, answer, n_run, budget, step):
    return struct.pack("<IIIBBHII", n_col, n_pair, width, dtype, answer, n_run, budget, step)


def result(n_row, width, dtype, queue, queued, running, rows):
    return struct.pack("<IIBBHII", n_row, width, dtype, queue, 0, queued, running) + rows


def span(n_col, width, dtype, answer, budget, step, places, rows):
    head = struct.pack("<IIIBBHII", n_col, 0, width, dtype, answer, 0, budget, step)
    return head + struct.pack(f"<{2 * n_col}I", *places) + rows


def js(value):
    return json.dumps(value, separators=(",", ":")).encode()


LIMITS = {
    "frame": 4194304, "message": 8388608, "pending": 8388608, "n_pending": 8, "fragment": 262144, "n_task": 4,
}
HELLO = js({
    "build": "0.1.0", "id": "55" * 16, "name": "attic", "features": ["q8"], "units": ["experts", "span"], "device": "cpu", "class": "33" * 32,
    "memory": 4294967296, "cores": 8, "limits": LIMITS, "nonce": "11" * 32,
})
PAGE = js({
    "f16": True, "subgroup": [16, 32], "software": False, "max_threads": 256, "max_workgroup_bytes": 16384, "max_groups": 65535,
    "max_bindings": 10, "max_binding_bytes": 134217728, "max_buffer_bytes": 4294967296,
})
TOKEN = bytes(range(16))


def prove(role):
    covered = role + b"\0" + b"\x22" * 32 + b"\x11" * 32 + hashlib.sha256(HELLO).digest()
    return hmac.new(TOKEN, covered, "sha256").hexdigest()


# Columns 0 and 1 for expert 3, column 1 for expert 9.
RUNS = u16(3, 2, 9, 1)
PAIRS = u16(0, 0, 1, 1, 1, 0)
Q8_ROW = f16(0.5) + struct.pack("32b", *range(-16, 16)) + f16(2.0) + struct.pack("32b", 127, -127, *[0] * 30)
FRAMES = {
    "task": frame(
        0x10, task_head(2, 3, 3, 0, 1, 2, 0, 2) + RUNS + PAIRS + f32(0.5, -1.0, 2.0, 0.0, 1.5, -0.25), 0, 7, 2, 5
    ),
    "task-sum": frame(
        0x10,
        task_head(2, 3, 3, 1, 0, 2, 1500, 64) + RUNS + PAIRS + f32(0.75, 0.5, 0.25) + f16(0.5, -1.0, 2.0, 0.0, 1.5, -0.25),
        1 | 4, 8, 2, 5,
    ),
    "task-bf16": frame(0x10, task_head(1, 1, 1, 2, 2, 1, 0, 1) + u16(0, 1, 0, 0) + bf16(1e38) + b"\0\0", 0, 9, 0, 65535),
    "task-q8": frame(0x10, task_head(1, 1, 34, 3, 3, 1, 0, 1) + u16(65535, 1, 0, 7) + Q8_ROW, 0, 10, 4294967295, 0),
    "result": frame(0x11, result(3, 2, 0, 1, 250, 1250, f32(1, 2, 3, 4, 5, 6)), 4, 7, 2, 5),
    "result-sum": frame(0x11, result(1, 3, 1, 0, 0, 1, f16(1, -2, 0.5) + b"\0\0"), 1, 8, 2, 5),
    "fail": frame(0x12, struct.pack("<HHI", 4, 11, 2000) + "queue füll".encode(), 0, 7, 2, 5),
    "fail-frame": frame(0x12, struct.pack("<HHI", 1, 0, 0)),
    "cancel": frame(0x13, struct.pack("<3Q", 7, 8, 1 << 40), 4),
    "state": frame(0x14, struct.pack("<BBHI", 1, 0, 3, 4096)),
    "ping": frame(0x20, struct.pack("<Q", 123456789)),
    "pong": frame(0x21, struct.pack("<Q", 123456789), 4),
    "span": frame(0x30, span(2, 2, 0, 0, 0, 2, (1, 10, 4, 0), f32(1, 2, 3, 4)), 0, 11, 1, 16),
    "span-result": frame(0x31, result(2, 2, 0, 0, 0, 0, f32(1, 2, 3, 4)), 0, 11, 1, 16),
    "trim": frame(0x32, struct.pack("<II", 4, 100), 0, 0, 1, 16),
    "hello": frame(1, HELLO),
    "challenge": frame(2, js({"nonce": "22" * 32, "proof": prove(b"hub")})),
    "proof": frame(3, js({"proof": prove(b"worker")})),
    "welcome": frame(4, js({
        "worker": 3, "model": "ab" * 32, "skeleton": {"path": "/swarm/skeleton", "length": 100000, "sha256": "ab" * 32},
        "block": 8, "key": "44" * 16, "limits": LIMITS, "epoch": 1,
    })),
    "hello-page": frame(1, HELLO[:-1] + b',"page":' + PAGE + b"}", 4),
    "welcome-page": frame(4, js({
        "worker": 3, "model": "ab" * 32, "skeleton": {"path": "/swarm/skeleton", "length": 100000, "sha256": "ab" * 32},
        "block": 8, "key": "44" * 16, "limits": LIMITS, "epoch": 1,
        "plan": {"path": "/swarm/plan", "length": 200000, "sha256": "ef" * 32},
    }), 4),
    "refuse": frame(5, js({"code": "token", "text": "the proof does not fit"})),
    "assign": frame(6, js({
        "epoch": 1, "more": False, "units": [{"experts": {"layer": 0, "experts": [0, 3]}}, {"span": {"first": 1, "end": 4}}],
        "files": ["/swarm/file/0"],
        "tensors": [{
            "name": "blk.0.ffn_up_exps.weight", "file": 0, "offset": 4096, "stride": 1024, "length": 1024, "parts": [0, 3],
            "sha256": ["01" * 32, "02" * 32],
        }],
    }), 4),
    "have": frame(7, js({"epoch": 1, "units": [{"experts": {"layer": 0, "experts": [0, 3]}}], "canary": "cd" * 32})),
    "drain": frame(8, js({"text": "bye"})),
}
# Two fragments of one task, with a ping between them, each behind its length: the form of a connection for the fuzzer.
WHOLE = task_head(2, 3, 3, 0, 1, 2, 0, 2) + RUNS + PAIRS + f32(0.5, -1.0, 2.0, 0.0, 1.5, -0.25)
PARTS = [frame(0x10, WHOLE[:30], 2, 7, 2, 5, 0), FRAMES["ping"], frame(0x10, WHOLE[30:], 0, 7, 2, 5, 1)]
FRAGMENTS = b"".join(u16(len(part)) + part for part in PARTS)

SEEDS.mkdir(parents=True, exist_ok=True)
for name, data in FRAMES.items():
    (HERE / f"{name}.frame").write_bytes(data)
    (SEEDS / name).write_bytes(u16(len(data)) + data)
(HERE / "fragments.frames").write_bytes(FRAGMENTS)
(SEEDS / "fragments").write_bytes(FRAGMENTS)
