# SPDX-License-Identifier: Apache-2.0
"""Mutations of good build.toml files: the same seed gives the same files."""
import random
import re

KINDS = ("key-dropped", "key-added", "key-misspelt", "key-moved", "type-changed", "value-bound", "table-doubled",
         "bytes-flipped")

TYPES = ("1", "-1", "0", "1.5", "inf", "true", '"x"', "'2.11'", "[]", "[1]", '["x"]', '[["x"]]', "{}", "{ a = 1 }",
         "1979-05-27", "07:32:00", '[{ repo-id = "a/b", version = 1 }]', '{ cpu = "2.11" }', '["cpu"]')
VERSIONS = ('"1.0"', '"12"', '"12.6.1"', '""', '" "', '"0.0"', '"+1.2"', '"1.-2"', '"1..2"', '"1.2."', '".1"',
            '" 12.6 "', '"012.06"', '"18446744073709551615.0"', '"18446744073709551616.0"', '"\\u00a012.6"',
            '"12. 6"', '"v1.2"', '"12.6a"', '"\\uff11.2"', '"++1.2"', '"+.1"', '"0x1.2"', '"1_0.2"')
URLS = ('"https://a/b"', '"HTTPS://a/b"', '"ftp://a/b"', '"file:///a"', '"git@h:p"', '"git@h:/p"', '"h:p"', '"h.x:p"',
        '":p"', '"git@h:"', '"https://"', '"https:///x"', '"https:x"', '"ssh://"', '"git:x"', '"https://a b/c"',
        '"https://a:65535/x"', '"https://a:65536/x"', '"https://[::1]/x"', '"https://[::1/x"', '"git+ssh://h/x"',
        '"git+file://h/x"', '"1.2.3.4:x"', '"https://1.2.3.4/x"', '"https://1.2.3.256/x"', '""', '"x"', '"a/b:c"',
        '"https://u@/x"', '"https://%zz/x"', '"h x:p"', '" https://a/b"', '"https://[1:2:3:4:5:6:7:8]/"',
        '"https://[1:2:3:4:5:6:7:8:9]/"', '"https://[::1.2.3.4]/"', '"https://[::1.2.3.04]/"', '"ssh://h^x/y"',
        '"https://a..b/"', '"https://xn--a/"', '"https://0x7f.1/"', '"https://256.256/"', '"https://1.65536/"',
        '"g@[h]:p"', '"https:a b"', '"http:a:b"')
BACKENDS = ('[]', '["cpu", "cpu"]', '["CPU"]', '[""]', '["cann", "cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu"]',
            '["npu"]', '["cpu", 1]', '"cpu"', '[["cpu"]]', '["cpu ", "cuda"]')
DEPENDS = ('[]', '["torch", "torch"]', '["Torch"]', '["cutlass_4_5"]', '["cutlass_4_6"]', '["cutlass-4-5"]', '["metal-cpp"]',
           '["metal_cpp"]', '["sycl_tla"]', '["sycl-tla"]', '[""]', '"torch"')
KERNEL_DEPENDS = ('[]', '[{ repo-id = "a/b" }]', '[{ version = 1 }]', '[{ repo-id = "a/b", version = 1, revision = "x" }]',
                  '[{ repo-id = "a/b", version = -1 }]', '[{ repo-id = "", version = 0 }]', '["a/b"]',
                  '[{ repo-id = "a/b", revision = 1 }]', '[{ repo_id = "a/b", version = 1 }]',
                  '[{ repo-id = "a/b", version = 9223372036854775807 }]', '{ repo-id = "a/b", version = 1 }',
                  '[{ repo-id = "a/b", version = 1 }, { repo-id = "a/b", version = 1 }]', '[{}]',
                  '[{ repo-id = "a/b", version = 1, extra = 1 }]')
BOUNDS = {
    "name": ('"a"', '"ab"', '"a-"', '"-a"', '"1a"', '"a1"', '"a--b"', '"aB"', '"a b"', '"a_b"', '"a.b"', '"\\u00e4b"',
             '""', f'"{"a" * 1000}"', '"ab\\n"', '"""ab"""', "'''ab'''"),
    "version": ("0", "1", "-0", "-1", "+1", "0x10", "1_0", "01", "4294967295", "4294967296", "9223372036854775807",
                "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1e0", "1.0", '"1"'),
    "edition": ("0", "1", "2", "3", "4", "5", "6", "-5", "4294967295", "4294967296", "4294967301", "0x5", "5.0", '"5"',
                "true"),
    "license": ('""', '"x y"', '"\\u0000"', "'''\nmit'''"),
    "upstream": URLS, "source": URLS, "backends": BACKENDS, "depends": DEPENDS, "kernel-depends": KERNEL_DEPENDS,
    "minver": VERSIONS, "maxver": VERSIONS, "cuda-minver": VERSIONS,
    "stable-abi": VERSIONS + ('{}', '{ cpu = "2.11" }', '{ cpu = "2" }', '{ gpu = "2.11" }', '{ cpu = 2.11 }', '["2.11"]',
                              '{ cpu = "2.11", cpu = "2.12" }', '{ tpu = "2.11" }'),
    "backend": ('"cpu"', '"cuda"', '"metal"', '"rocm"', '"xpu"', '"tpu"', '"neuron"', '"cann"', '"CUDA"', '""', '"gpu"'),
    "src": ('[]', '[""]', '["/abs"]', '["../up"]', '["a", "a"]', '[1]', '"a"', '[["a"]]'),
    "pyext": ('[]', '[""]', '["py", "py"]', '"py"'),
    "repo-id": ('""', '"x"', '"a/b/c"', "1"), "branch": ('""', '" "', "1"),
    "python-depends": ('[]', '["nothing"]', '["einops", "einops"]', '[1]'),
}
KEYS = ("name", "version", "edition", "license", "upstream", "source", "backends", "kernel-depends", "python-depends",
        "cuda", "neuron", "tpu", "xpu", "hub", "cpu", "rocm", "metal", "cann", "include", "minver", "maxver", "pyext", "src",
        "stable-abi", "cxx-flags", "cuda_capabilities", "cuda-capabilities", "rocm_archs", "rocm-archs", "backend",
        "depends", "cuda-flags", "cuda-minver", "hip-flags", "sycl-flags", "universal", "language", "description",
        "kernels-minver", "homepage", "authors", "repo-id", "branch", "\"\"", "\"x.y\"")
TABLES = ("[torch]", "[torch-noarch]", "[tvm-ffi]", "[general.cuda]", "[general.rocm]", "[general.cpu]", "[general.tpu]",
          "[general.hub]", "[kernel]", "[kernel.extra]", "[package]", "[general]", "[torch.stable-abi]", "[[kernel.list]]",
          "[jax]", "[kernel.extra.deeper]", "[[torch]]", "[[general]]")

KEY_LINE = re.compile(r"^([A-Za-z0-9_.\"-]+)\s*=\s*(.*)$")


def lines_of(content):
    return content.decode("utf8").split("\n")


def key_lines(lines):
    """Numbers of lines that are `key = value` in one line, with the last part of the key."""
    out = []
    for number, line in enumerate(lines):
        match = KEY_LINE.match(line)
        if match and not match.group(2).endswith("["):
            out.append((number, match.group(1), match.group(1).split(".")[-1].strip('"'), match.group(2)))
    return out


def headers(lines):
    return [n for n, line in enumerate(lines) if line.startswith("[")]


def replaced(lines, number, text):
    return lines[:number] + [text] + lines[number + 1:]


def typo(random_, word):
    at = random_.randrange(len(word))
    kind = random_.randrange(5)
    if kind == 0 and len(word) > 1:
        return word[:at] + word[at + 1:]
    if kind == 1:
        return word[:at] + word[at] + word[at:]
    if kind == 2 and at + 1 < len(word):
        return word[:at] + word[at + 1] + word[at] + word[at + 2:]
    if kind == 3:
        return word.replace("-", "_") if "-" in word else word.upper()
    return word + "s"


def per_sample(random_, name, lines):
    keys = key_lines(lines)
    heads = headers(lines)
    for number, key, _, value in keys:
        yield "key-dropped", f"{name}: without {key}", lines[:number] + lines[number + 1:]
        yield "key-misspelt", f"{name}: typo in {key}", replaced(lines, number, f"{typo(random_, key)} = {value}")
    for number in heads:
        end = next((n for n in heads if n > number), len(lines))
        yield "key-dropped", f"{name}: without table {lines[number]}", lines[:number] + lines[end:]
        yield "key-misspelt", f"{name}: typo in {lines[number]}", \
            replaced(lines, number, "[" + typo(random_, lines[number].strip("[]")) + "]")
        yield "table-doubled", f"{name}: twice {lines[number]}", lines[:end] + lines[number:end] + lines[end:]
        yield "table-doubled", f"{name}: header twice {lines[number]}", lines + [lines[number]]
        yield "table-doubled", f"{name}: as list {lines[number]}", replaced(lines, number, f"[{lines[number]}]")
        yield "table-doubled", f"{name}: below itself {lines[number]}", \
            lines[:end] + [lines[number][:-1] + ".again]"] + lines[number + 1:end] + lines[end:]
    for _ in range(12):
        at = random_.choice([0] + [n + 1 for n in heads])
        key = random_.choice(KEYS)
        yield "key-added", f"{name}: new {key}", lines[:at] + [f"{key} = {random_.choice(TYPES)}"] + lines[at:]
    for table in random_.sample(TABLES, 6):
        yield "key-added", f"{name}: new {table}", lines + [table]
    for _ in range(10):
        number, key, _, value = random_.choice(keys)
        rest = lines[:number] + lines[number + 1:]
        at = random_.choice([0, len(rest)] + [n + 1 for n in headers(rest)])
        yield "key-moved", f"{name}: moved {key}", rest[:at] + [lines[number]] + rest[at:]
    for number, key, _, _ in keys:
        for value in random_.sample(TYPES, 4):
            yield "type-changed", f"{name}: {key} = {value}", replaced(lines, number, f"{key} = {value}")
    general = next((n for n, line in enumerate(lines) if line == "[general]"), None)
    if general is not None:
        for text in ('hub = ["a/b", "main"]', 'cuda = ["12.6", "13.0", [], []]', 'tpu = [[]]'):
            yield "type-changed", f"{name}: {text}", lines[:general + 1] + [text] + lines[general + 1:]
    for number, key, last, _ in keys:
        for value in BOUNDS.get(last, ()):
            yield "value-bound", f"{name}: {key} = {value}", replaced(lines, number, f"{key} = {value}")


def flipped(random_, content):
    data = bytearray(content)
    kind = random_.randrange(5)
    at = random_.randrange(len(data))
    if kind == 0:
        data[at] ^= 1 << random_.randrange(8)
    elif kind == 1:
        del data[at]
    elif kind == 2:
        data.insert(at, random_.randrange(256))
    elif kind == 3:
        data[at:at] = random_.choice("\u00fc\u00a0\u3000\ufeff\u2028\u200b\u20ac").encode("utf8")
    else:
        data[at] = random_.choice(b'"\'[]{}=.,#\n\r\t \\-_0aZ\x00\x7f\x80\xff')
    return bytes(data)


def generate(good, seed):
    """Cases {name, kind, content}, at most one of the same content."""
    random_ = random.Random(seed)
    out, seen = [], {case["content"] for case in good}

    def add(kind, name, content):
        if content not in seen:
            seen.add(content)
            out.append({"kind": kind, "name": f"{kind} {name}", "content": content})

    for case in good:
        for kind, name, lines in per_sample(random_, case["name"], lines_of(case["content"])):
            add(kind, name, "\n".join(lines).encode("utf8"))
        for number in range(40):
            add("bytes-flipped", f"{case['name']}: {number}", flipped(random_, case["content"]))
    return out
