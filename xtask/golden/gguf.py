"""Reads GGUF files, and writes them with tensors in f32."""
import math
import struct

# In the order of GGUF's type ids.
SCALARS = "uint8 int8 uint16 int16 uint32 int32 float32 bool string array uint64 int64 float64".split()
# In the notation of `struct`.
CODES = dict(zip(SCALARS, ["B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d"]))
ALIGNMENT = 32


class Broken(Exception):
    pass


class Reader:
    def __init__(self, file, name):
        self.file, self.name = file, name

    def take(self, n):
        data = self.file.read(n)
        if len(data) != n:
            raise Broken(f"{self.name}: the file ends within its head, at byte {self.file.tell()}")
        return data

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def string(self):
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def kind(self):
        id = self.number("I")
        if id >= len(SCALARS):
            raise Broken(f"{self.name}: value type {id} at byte {self.file.tell() - 4}, known are 0 to {len(SCALARS) - 1}")
        return SCALARS[id]

    def value(self, kind):
        return self.string() if kind == "string" else self.number(CODES[kind])

    def entry(self):
        """A value of the metadata, in the form of a fixture: its type and the value."""
        kind = self.kind()
        if kind != "array":
            return {"type": kind, "value": self.value(kind)}
        of = self.kind()
        if of == "array":
            raise Broken(f"{self.name}: an array of arrays in the metadata")
        return {"type": f"array:{of}", "value": [self.value(of) for _ in range(self.number("Q"))]}


def head(file, path):
    """Metadata and tensors (name, shape with the fastest dimension first, type, offset in the data) of an open file."""
    r = Reader(file, path)
    if r.take(4) != b"GGUF":
        raise Broken(f"{path}: not a GGUF file")
    version = r.number("I")
    if version not in (2, 3):
        raise Broken(f"{path}: GGUF version {version}, known are 2 and 3")
    n_tensor, n_kv = r.number("Q"), r.number("Q")
    kv = {r.string(): r.entry() for _ in range(n_kv)}
    tensors = []
    for _ in range(n_tensor):
        name = r.string()
        shape = [r.number("Q") for _ in range(r.number("I"))]
        tensors.append({"name": name, "shape": shape, "type": r.number("I"), "offset": r.number("Q")})
    return kv, tensors


def read_head(path):
    """Metadata and tensors (name and shape) of a file."""
    with open(path, "rb") as file:
        kv, tensors = head(file, path)
    return kv, [{"name": t["name"], "shape": t["shape"]} for t in tensors]


def read(path):
    """Metadata, tensors and the data of all tensors of a file."""
    with open(path, "rb") as file:
        kv, tensors = head(file, path)
        alignment = kv.get("general.alignment", {"value": ALIGNMENT})["value"]
        file.seek(-file.tell() % alignment, 1)
        return kv, tensors, file.read()


def packed(kind, value):
    if kind == "string":
        text = value.encode()
        return struct.pack("<Q", len(text)) + text
    return struct.pack("<" + CODES[kind], value)


def entry(key, kind, value):
    """Bytes of one key of the metadata."""
    of = kind.removeprefix("array:")
    if of not in CODES or of == "array":
        raise Broken(f"`{key}`: no type `{kind}`; types are {', '.join(k for k in SCALARS if k != 'array')}, and array:TYPE")
    try:
        if of == kind:
            return struct.pack("<I", SCALARS.index(kind)) + packed(kind, value)
        values = b"".join(packed(of, v) for v in value)
        return struct.pack("<IIQ", SCALARS.index("array"), SCALARS.index(of), len(value)) + values
    except (struct.error, AttributeError, TypeError) as e:
        raise Broken(f"`{key}`: {value!r} is not a value of type {kind} ({e})")


def write(path, kv, tensors, values):
    """Writes a file whose tensors are f32; `values(name, n)` are a tensor's."""
    with open(path, "wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(kv)))
        for key, e in kv.items():
            file.write(packed("string", key) + entry(key, e["type"], e["value"]))
        offset = 0
        for t in tensors:
            shape = t["shape"]
            file.write(packed("string", t["name"]))
            file.write(struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset))
            offset += -(-4 * math.prod(shape) // ALIGNMENT) * ALIGNMENT
        for t in tensors:
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(floats(values(t["name"], math.prod(t["shape"]))))
        file.write(bytes(-file.tell() % ALIGNMENT))


def floats(values):
    """Little-endian f32."""
    return struct.pack(f"<{len(values)}f", *values)


def from_floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))
