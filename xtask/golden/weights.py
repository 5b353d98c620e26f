"""Values that follow from names: the weights of fixtures, which the test program makes too (whole_model/archs.rs)."""
import re

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def random(name, n, seed):
    """n numbers of 64 bits: splitmix64, started at the FNV-1a hash of the name and the seed."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    start = h ^ (seed * STEP & MASK)
    for i in range(n):
        z = (start + i * STEP) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def rule(name):
    """The range of a tensor's values, as a function of numbers in [-1, 1). The first rule that fits the name holds."""
    if re.search(r"norm(_\w+)?\.weight$", name) or name.endswith("norm"):
        return lambda u: 1 + 0.25 * u
    if "ssm_a" in name:
        return lambda u: -(0.0625 + abs(u))
    if name.startswith("rope_f") or ".rope_f" in name:
        return lambda u: 1 + abs(u)
    if "conv" in name:
        return lambda u: 0.5 * u
    if "sinks" in name or name.endswith("ssm_dt.bias") or name.endswith("ssm_d"):
        return lambda u: u
    return lambda u: 0.125 * u


def weights(name, n, seed):
    """The values of a tensor of n elements. All are exact in f16."""
    scale = rule(name)
    return [scale((z >> 53) / 1024 - 1) for z in random(name, n, seed)]
