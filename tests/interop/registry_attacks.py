# SPDX-License-Identifier: Apache-2.0
"""registry_attacks.py KERNEL_BUILDER: what an attacker sends, byte by byte on the socket, a row each: refused with the right status, no
ref moved, nothing of it readable, the server still answering."""
import base64
import gzip
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
import urllib.parse

from registry_server import Registry, run_tests

registry = Registry(os.path.abspath(sys.argv[1]))
registry.start()
HOST, PORT = urllib.parse.urlsplit(registry.endpoint).netloc.split(":")
alice = registry.token("alice", "--namespace", "acme")
bob = registry.token("bob")
API = "/api/kernels/acme/k"


def exchange(data, wait=20, half_close=False):
    """Everything that comes back for these bytes until the server is silent or closes."""
    with socket.create_connection((HOST, int(PORT)), timeout=wait) as connection:
        connection.settimeout(wait)
        answer = b""
        try:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                answer += piece
                head, found, body = answer.partition(b"\r\n\r\n")
                length = next((int(row[15:]) for row in head.lower().split(b"\r\n") if row.startswith(b"content-length:")), None)
                if found and length is not None and len(body) >= length and not head.startswith(b"HTTP/1.1 100"):
                    break
        except (socket.timeout, ConnectionError):
            pass
        return answer


def head(method, target, *fields, token=alice):
    who = [f"Authorization: Bearer {token}"] if token else []
    rows = [f"{method} {target} HTTP/1.1", "Host: h", *who, *fields]
    return "\r\n".join(rows).encode("utf-8", "surrogateescape") + b"\r\n\r\n"


def status(answer):
    """The status of the final answer; 0 for a connection closed without one."""
    while answer.startswith(b"HTTP/1.1 100"):
        answer = answer.partition(b"\r\n\r\n")[2]
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def ask(method, target, body=b"", *fields, token=alice):
    body = body.encode() if isinstance(body, str) else body
    answer = exchange(head(method, target, f"Content-Length: {len(body)}", *fields, token=token) + body)
    return status(answer), answer.partition(b"\r\n\r\n")[2]


def line(key, value):
    return json.dumps({"key": key, "value": value}) + "\n"


def file_line(path, content=b"x"):
    return line("file", {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"})


HEADER = line("header", {"summary": "attack"})


def state():
    """Refs of the repository and what the blob folder holds: what an attack must not change."""
    refs = ask("GET", f"{API}/refs")[1]
    blobs = sorted(name for _, _, names in os.walk(os.path.join(registry.root, "blobs")) for name in names)
    return refs, blobs


def check(rows, act):
    """Each row (name, ..., allowed): act(row) gives the status. All are looked at before the test fails."""
    wrong = []
    for row in rows:
        before = state()
        got = act(*row[1:-1])
        if got not in row[-1]:
            wrong.append(f"{row[0]}: {got}, not {row[-1]}")
        if state() != before:
            wrong.append(f"{row[0]}: it changed something")
    assert not wrong, "\n".join(wrong)
    assert ask("GET", "/health")[0] == 200
    print(f"     {len(rows)} rows", flush=True)


def set_up():
    assert ask("POST", "/api/repos/create", '{"name":"k","organization":"acme","type":"kernel"}')[0] == 200
    assert ask("POST", f"{API}/commit/main", HEADER + file_line("dir/file", b"content") + file_line("README.md", b"<script>"))[0] == 200


PATHS = ["..", ".", "../x", "a/../b", "a/./b", "a//b", "/etc/passwd", "a/", "", "a\\b", "..\\x", "a\0b", "a\nb", "a\x7fb", "a\x1bb", ".git/config",
         ".GIT/config", "x/.git/hooks/y", ".git /x", ".git./x", "GIT~1/x", "git~1/config", ".cache/x", "con", "aux.txt", "NUL", "a/com1", "lpt9.x", "a:b", "a ",
         "a.", "x/b./c", "a?b", "a*b", "a|b", "a<b", 'a"b', "c:/x", "x" * 256, "é" * 128, "/".join(["d" * 200] * 25), "/".join("d" * 3000), "dir", "dir/file/x",
         "DIR/file", "Readme.md", "dir/FILE", "\u202egpj.so", "a\u200db", "x/.g\u200cit/config", "e\u0301", ".CACHE/x"]
# Percent signs stay what they are in a path of a commit: text. Decoded anywhere, they would leave the repository.
LITERAL = ["%2e%2e%2fx", "%252e%252e%252f", "..%2fx"]


def paths_of_commits():
    check([(f"path {path[:40]!r}", path, (400, 409, 422)) for path in PATHS],
          lambda path: ask("POST", f"{API}/commit/main", HEADER + file_line(path))[0])
    check([(f"raw {raw!r}", raw, (400,)) for raw in (b"\xff\xfe", b"a\xc0\xafb", b"\xed\xa0\x80", b"a\xf5\x80\x80\x80")],
          lambda raw: ask("POST", f"{API}/commit/main", HEADER.encode() + file_line("@@").encode().replace(b"@@", raw))[0])
    check([(f"deleted {path!r}", path, (400, 404)) for path in ("../x", "/etc", "dir/../../x", "nothing")],
          lambda path: ask("POST", f"{API}/commit/main", HEADER + line("deletedFile", {"path": path}))[0])
    for path in LITERAL:
        code, _ = ask("POST", f"{API}/commit/main", HEADER + file_line(path))
        assert code in (200, 400), (path, code)
        if code == 200:
            assert ask("GET", f"/kernels/acme/k/resolve/main/{urllib.parse.quote(path, safe='')}")[1] == b"x"
            assert ask("POST", f"{API}/commit/main", HEADER + line("deletedFile", {"path": path}))[0] == 200
    outside = [n for n in os.listdir(registry.dir) if n not in ("root", "log", "endpoint")]
    assert outside == [], outside


def paths_of_addresses():
    secrets = [b"[limits]", b"SQLite", b"root:x"]
    targets = ["../registry.toml", "..%2f..%2fregistry.toml", "%2e%2e/%2e%2e/meta.sqlite", "%252e%252e%252fmeta.sqlite", "..%5c..%5cmeta.sqlite",
               "..%c0%af..%c0%afetc/passwd", "%00", "dir/file%00.txt", "/etc/passwd", "dir//file", "dir/./file", "dir/../README.md", "x" * 5000]

    def act(target):
        code, body = ask("GET", f"/kernels/acme/k/resolve/main/{target}")
        assert not any(secret in body for secret in secrets), target
        return code
    check([(target[:40], target, (400, 404, 414, 431)) for target in targets], act)


def revisions():
    rows = ["refs/heads/../../x", "-x", "a" * 40, "0123456789abcdef0123456789abcdef01234567", "main/x", "a..b", "a b", "a~1", "a^", "a:b", "x.lock", "a//b", "/a", "a/",
            "@{0}", "@", "a\\b", "a\x07", "x" * 300, ".hidden", "a/.b", "refs/pr/1", "HEAD", "*"]
    check([(f"branch {name[:30]!r}", name, (400, 403, 404, 409, 422)) for name in rows],
          lambda name: ask("POST", f"{API}/branch/{urllib.parse.quote(name, safe='')}", "{}")[0])
    check([(f"tag {name[:30]!r}", name, (400, 403, 404, 409, 422)) for name in rows if name not in ("main/x", "HEAD")],
          lambda name: ask("POST", f"{API}/tag/main", json.dumps({"tag": name}))[0])
    check([(f"read {name[:30]!r}", name, (400, 404)) for name in rows if name != "HEAD"] + [(name, name, (400, 404)) for name in ["refs%2fheads%2f..%2f..%2fx", "%ff", "main%00"]],
          lambda name: ask("GET", f"/kernels/acme/k/resolve/{name if '%' in name else urllib.parse.quote(name, safe='')}/dir/file")[0])


def http():
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
    post = f"{API}/branch/b"
    rows = [
        ("length and chunks", head("POST", post, "Content-Length: 4", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + smuggled, (400,)),
        ("two lengths", head("POST", post, "Content-Length: 4", "Content-Length: 5") + b"12345", (400,)),
        ("lengths in a list", head("POST", post, "Content-Length: 4, 4") + b"1234", (400,)),
        ("a negative length", head("POST", post, "Content-Length: -1"), (400,)),
        ("a length with a sign", head("POST", post, "Content-Length: +4") + b"1234", (400,)),
        ("a length of hex", head("POST", post, "Content-Length: 0x4") + b"1234", (400,)),
        ("a length that overflows", head("POST", post, "Content-Length: 18446744073709551617") + b"1", (400, 413)),
        ("chunked twice", head("POST", post, "Transfer-Encoding: chunked, chunked") + b"0\r\n\r\n", (400, 501)),
        ("another coding", head("POST", post, "Transfer-Encoding: xchunked") + b"0\r\n\r\n", (400, 501)),
        ("an obscured coding", head("POST", post, "Transfer-Encoding : chunked") + b"0\r\n\r\n" + smuggled, (400,)),
        ("a folded field", head("GET", "/health", "X-A: b\r\n c"), (200, 400)),
        ("bare line feeds", b"GET /health HTTP/1.1\nHost: h\n\n", (400, 0)),
        ("a bare return", b"GET /health HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", (400,)),
        ("a zero byte", b"GET /health HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", (400,)),
        ("no host", b"GET /health HTTP/1.1\r\n\r\n", (400,)),
        ("two hosts", b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", (400,)),
        ("a huge header", head("GET", "/health", "X: " + "a" * 100_000), (400, 431)),
        ("ten thousand fields", head("GET", "/health", *["A: b"] * 10_000), (400, 431)),
        ("a space in the target", b"GET /he alth HTTP/1.1\r\nHost: h\r\n\r\n", (400, 505)),
        ("another protocol", b"GET /health HTTP/9.9\r\nHost: h\r\n\r\n", (400, 505)),
        ("TLS to cleartext", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + b"\r\n\r\n", (400, 0)),
        ("gzip", head("POST", post, "Content-Encoding: gzip", "Content-Length: 24") + gzip.compress(b"{}" * 1000)[:24], (400, 415)),
        ("an unknown expectation", head("POST", post, "Expect: magic", "Content-Length: 2") + b"{}", (400, 417)),
        ("an absolute target elsewhere", head("GET", "http://other.example/health"), (200, 400, 404, 421)),
        ("a method of nobody", head("BREW", "/health"), (400, 404, 405, 501)),
        ("TRACE", head("TRACE", "/health"), (400, 404, 405, 501)),
        ("CONNECT", b"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", (400, 404, 405, 501)),
        ("HEAD with a body", head("HEAD", "/health", "Content-Length: 5") + b"12345", (200, 400)),
    ]

    def act(data):
        answer = exchange(data, wait=5)
        assert b"smuggled" not in answer
        assert answer.count(b"HTTP/1.1 ") <= 1, answer
        return status(answer)
    check(rows, act)
    # Bytes one by one are slow, not wrong.
    with socket.create_connection((HOST, int(PORT))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert status(connection.recv(4096)) == 200
    # Pipelined requests are answered in order.
    answer = exchange(head("GET", "/health") + head("GET", "/nothing", "Connection: close"), half_close=True)
    assert answer.startswith(b"HTTP/1.1 200"), answer


def ranges():
    url = "/kernels/acme/k/resolve/main/dir/file"
    rows = [("many ranges", "bytes=" + ",".join(["0-0"] * 1000), (200, 400, 416)), ("reversed", "bytes=5-2", (200, 400, 416)), ("beyond", "bytes=7-", (416,)),
            ("overflow", "bytes=0-99999999999999999999999", (200, 206, 416)), ("start overflow", "bytes=99999999999999999999-", (200, 416)),
            ("suffix beyond", "bytes=-100", (200, 206)), ("suffix of nothing", "bytes=-0", (200, 416)), ("no number", "bytes=a-b", (200, 416)),
            ("another unit", "lines=1-2", (200, 416)), ("negative", "bytes=--1", (200, 416)), ("white space", "bytes= 0 - 1", (200, 206, 416))]

    def act(value):
        code, body = ask("GET", url, b"", f"Range: {value}")
        assert code == 416 or len(body) <= 7, value
        return code
    check(rows, act)


def streams():
    oid = hashlib.sha256(b"absent").hexdigest()
    lfs = {"path": "a.bin", "algo": "sha256", "oid": oid, "size": 6}
    rows = [
        ("no header", file_line("a"), (400,)), ("header second", file_line("a") + HEADER, (400,)), ("two headers", HEADER + HEADER, (400,)),
        ("nothing", "", (400,)), ("no JSON", HEADER + "nonsense\n", (400,)), ("a number", HEADER + "5\n", (400,)), ("no key", HEADER + '{"value":{}}\n', (400,)),
        ("a doubled key", HEADER + '{"key":"file","key":"file","value":{"path":"a","content":"eA==","path":"b"}}\n', (400,)),
        ("an unknown key", HEADER + line("symlink", {"path": "a", "target": "/etc"}), (400,)),
        ("deep nesting", HEADER + '{"key":"file","value":' + "[" * 100_000 + "]" * 100_000 + "}\n", (400,)),
        ("base64 with junk", HEADER + line("file", {"path": "a", "content": "e$A=", "encoding": "base64"}), (400,)),
        ("base64 cut off", HEADER + line("file", {"path": "a", "content": "eA=", "encoding": "base64"}), (400,)),
        ("another encoding", HEADER + line("file", {"path": "a", "content": "x", "encoding": "rot13"}), (400,)),
        ("cut in a line", HEADER + file_line("a")[:-10], (400,)),
        ("an absent object", HEADER + line("lfsFile", lfs), (400, 409, 422)),
        ("oid in capitals", HEADER + line("lfsFile", {**lfs, "oid": oid.upper()}), (400, 409, 422)),
        ("a short oid", HEADER + line("lfsFile", {**lfs, "oid": oid[:40]}), (400, 422)), ("an oid with dots", HEADER + line("lfsFile", {**lfs, "oid": "../" * 21 + "x"}), (400, 422)),
        ("a negative size", HEADER + line("lfsFile", {**lfs, "size": -1}), (400, 422)), ("half a byte", HEADER + line("lfsFile", {**lfs, "size": 1.5}), (400, 422)),
        ("another algorithm", HEADER + line("lfsFile", {**lfs, "algo": "md5"}), (400, 422)),
        ("file and folder", HEADER + file_line("n") + file_line("n/x"), (400, 409, 422)), ("a short parent", line("header", {"summary": "x", "parentCommit": "ab"}) + file_line("a"), (400, 412)),
        ("a parent that is not", line("header", {"summary": "x", "parentCommit": "f" * 40}) + file_line("a"), (412,)),
        ("a copy of nothing", HEADER + line("copyFile", {"path": "a", "srcPath": "nothing"}), (400, 404, 422)),
        ("a copy from outside", HEADER + line("copyFile", {"path": "a", "srcPath": "../../meta.sqlite"}), (400, 404, 422)),
    ]
    check(rows, lambda body: ask("POST", f"{API}/commit/main", body)[0])
    rows = [("create: no JSON", "/api/repos/create", "{", (400,)), ("create: nested", "/api/repos/create", "[" * 50_000, (400,)),
            ("create: another's", "/api/repos/create", '{"name":"x","organization":"bob","type":"kernel"}', (401, 403, 404)),
            ("create: dots", "/api/repos/create", '{"name":"..","organization":"acme","type":"kernel"}', (400, 422)),
            ("create: slash", "/api/repos/create", '{"name":"a/b/c","organization":"acme","type":"kernel"}', (400, 422)),
            ("batch: negative", "/kernels/acme/k.git/info/lfs/objects/batch", '{"operation":"upload","objects":[{"oid":"%s","size":-5}]}' % oid, (400, 422)),
            ("batch: short oid", "/kernels/acme/k.git/info/lfs/objects/batch", '{"operation":"upload","objects":[{"oid":"abc","size":5}]}', (400, 422)),
            ("batch: no objects", "/kernels/acme/k.git/info/lfs/objects/batch", '{"operation":"upload"}', (400, 422)),
            ("preupload: path", f"{API}/preupload/main", '{"files":[{"path":"../x","size":1,"sample":""}]}', (400, 422))]
    check(rows, lambda target, body: ask("POST", target, body)[0])


def a_line_without_an_end():
    """60 MB without a line feed and 100,000 operations: bounded memory, no hang."""
    def memory():
        with open(f"/proc/{registry.process.pid}/status") as file:
            return next(int(row.split()[1]) for row in file if row.startswith("VmHWM")) / 1024
    before = memory()
    body = HEADER.encode() + b'{"key":"' + b"a" * 60_000_000
    code, _ = ask("POST", f"{API}/commit/main", body)
    assert code in (0, 400, 413), code  # 0: refused before it was all sent
    assert memory() < before + 48, (before, memory())
    code, _ = ask("POST", f"{API}/commit/main", HEADER + file_line("same") * 100_000)
    assert code in (200, 400, 413), code


def grant(token=alice, size=6, content=b"object"):
    oid = hashlib.sha256(content).hexdigest()
    _, body = ask("POST", "/kernels/acme/k.git/info/lfs/objects/batch", json.dumps({"operation": "upload", "objects": [{"oid": oid, "size": size}]}), token=token)
    href = urllib.parse.urlsplit(json.loads(body)["objects"][0]["actions"]["upload"]["href"])
    return f"{href.path}?{href.query}"


def uploads():
    target = grant()
    other = target.replace(hashlib.sha256(b"object").hexdigest(), hashlib.sha256(b"other!").hexdigest())
    rows = [("other bytes", target, b"0bject", (400, 422)), ("shorter", target, b"objec", (400, 422)), ("longer", target, b"objects", (400, 413, 422)),
            ("empty", target, b"", (400, 422)), ("another object", other, b"other!", (400, 401, 403, 404)), ("no signature", target.split("?")[0], b"object", (400, 401, 403)),
            ("a cut signature", target[:-1], b"object", (400, 401, 403)), ("a later end", target.replace("expires=", "expires=9"), b"object", (400, 401, 403)),
            ("another user", target.replace("user=alice", "user=bob"), b"object", (400, 401, 403))]
    check([row for row in rows if row[1] != target or row[0] in ("other bytes", "shorter", "longer", "empty")],
          lambda address, body: ask("PUT", address, body, token=None)[0])
    # Two at once with the same name, one of them lying: the true one wins.
    target, results = grant(content=b"object" * 100_000, size=600_000), []
    threads = [threading.Thread(target=lambda data=data: results.append((data[:1], ask("PUT", target, data, token=None)[0])))
               for data in (b"object" * 100_000, b"0bject" * 100_000) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {code for first, code in results if first == b"o"} == {200} and {code for first, code in results if first == b"0"} <= {400, 422}, results
    assert registry.fsck()["problems"] == []


def what_is_not_ones_own():
    rows = [("commit of another", "POST", f"{API}/commit/main", HEADER + file_line("a"), (403, 404)), ("delete of another", "DELETE", "/api/repos/delete",
            '{"name":"k","organization":"acme","type":"kernel"}', (403, 404)), ("branch of another", "POST", f"{API}/branch/x", "{}", (403, 404)),
            ("settings of another", "PUT", f"{API}/settings", '{"private":true}', (403, 404))]
    check(rows, lambda method, target, body: ask(method, target, body, token=bob)[0])
    check(rows, lambda method, target, body: 403 if ask(method, target, body, token=None)[0] == 401 else 0)
    check(rows, lambda method, target, body: 403 if ask(method, target, body, token="hf_wrong")[0] == 401 else 0)


def stored_content_is_no_page():
    answer = exchange(head("GET", "/kernels/acme/k/resolve/main/README.md"))
    fields = answer.partition(b"\r\n\r\n")[0].lower()
    assert b"x-content-type-options: nosniff" in fields and b"content-disposition: attachment" in fields and b"sandbox" in fields, fields
    page = exchange(head("GET", "/kernels/acme/k"))
    assert status(page) == 200 and b"<script>" not in page.partition(b"\r\n\r\n")[2]


def logs_are_lines():
    exchange(b"GET /a%0d%0a{\"forged\":1} HTTP/1.1\r\nHost: h\r\nUser-Agent: x\x1b[31m\"}\r\n\r\n")
    ask("GET", f"/health?token={alice}")
    time.sleep(0.2)
    with open(os.path.join(registry.dir, "log"), encoding="utf-8") as log:
        text = log.read()
    assert alice not in text and "\x1b" not in text
    for row in text.splitlines():
        if row.startswith("{"):
            assert "forged" not in json.loads(row)


def many_at_once():
    """1500 connections with half a request, over the limit of the server: those of others are still answered."""
    held = []
    try:
        for _ in range(900):
            connection = socket.create_connection((HOST, int(PORT)), timeout=5)
            connection.sendall(b"GET /health HTTP/1.1\r\nHo")
            held.append(connection)
        for _ in range(20):
            assert ask("GET", "/health")[0] == 200
    finally:
        for connection in held:
            connection.close()


try:
    set_up()
    run_tests([paths_of_commits, paths_of_addresses, revisions, http, ranges, streams, a_line_without_an_end, uploads, what_is_not_ones_own,
               stored_content_is_no_page, logs_are_lines, many_at_once])
finally:
    if registry.process.poll() is None:
        registry.stop(signal.SIGKILL)
    shutil.rmtree(registry.dir, ignore_errors=True)
