# SPDX-License-Identifier: Apache-2.0
"""registry_soak.py KERNEL_BUILDER [SECONDS [PUBLISHERS READERS]]: publishers and readers on one registry at once (default 600 s, 8 and 64).
No acknowledged commit is lost, every read is what somebody published, no answer but success, 412 and 429, and the memory of the server
does not grow."""
import base64
import collections
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import urllib.parse

from registry_server import Registry, run_tests

seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600
publishers = int(sys.argv[3]) if len(sys.argv) > 3 else 8
readers = int(sys.argv[4]) if len(sys.argv) > 4 else 64
REPOS = 4
registry = Registry(os.path.abspath(sys.argv[1]))
registry.start()
token = registry.token("acme")
stop = time.time() + seconds
counts, unexpected, lock = collections.Counter(), [], threading.Lock()


class Client:
    """One connection that is kept, as clients keep theirs."""

    def __init__(self):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(registry.endpoint).netloc, timeout=60)

    def ask(self, method, path, body=None, allowed=(200,)):
        self.connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
        answer = self.connection.getresponse()
        data = answer.read()
        with lock:
            counts[f"{method} {answer.status}"] += 1
            if answer.status not in allowed:
                unexpected.append((method, path, answer.status, data[:200]))
        return answer.status, data


def line(key, value):
    return json.dumps({"key": key, "value": value}) + "\n"


def content_of(publisher, generation):
    """Text that says of itself what it is: whoever reads it can tell whether it is whole."""
    text = f"{publisher} {generation} " + "x" * (generation * 37 % 5000)
    return (hashlib.sha256(text.encode()).hexdigest() + " " + text).encode()


def large_of(publisher, generation):
    return hashlib.sha256(f"{publisher} {generation}".encode()).digest() * 20_000


def publish(client, repo, publisher, generation, acknowledged):
    """A small file and a large object that belong together; every second time on the head that was seen, as our uploader does."""
    large = large_of(publisher, generation)
    oid = hashlib.sha256(large).hexdigest()
    _, body = client.ask("POST", f"/kernels/{repo}.git/info/lfs/objects/batch",
                         json.dumps({"operation": "upload", "objects": [{"oid": oid, "size": len(large)}]}))
    actions = json.loads(body)["objects"][0].get("actions") or {}
    if "upload" in actions:
        href = urllib.parse.urlsplit(actions["upload"]["href"])
        client.ask("PUT", f"{href.path}?{href.query}", large)
    operations = line("file", {"path": f"{publisher}.txt", "content": base64.b64encode(content_of(publisher, generation)).decode(),
                               "encoding": "base64"}) + line("lfsFile", {"path": f"{publisher}.bin", "algo": "sha256", "oid": oid, "size": len(large)})
    while True:
        header = {"summary": f"{publisher} {generation}"}
        if generation % 2:
            _, body = client.ask("GET", f"/api/kernels/{repo}/revision/main")
            header["parentCommit"] = json.loads(body)["sha"]
        status, body = client.ask("POST", f"/api/kernels/{repo}/commit/main", line("header", header) + operations, (200, 412))
        if status == 200:
            acknowledged.append((repo, json.loads(body)["commitOid"], generation))
            return
        if time.time() > stop + 60:
            raise AssertionError("a commit never got through")


def work_as_publisher(number, acknowledged):
    client, generation = Client(), 0
    while time.time() < stop:
        generation += 1
        publish(client, f"acme/k{number % REPOS}", f"p{number}", generation, acknowledged)


def work_as_reader(number):
    client, rng = Client(), random.Random(number)
    while time.time() < stop:
        repo = f"acme/k{rng.randrange(REPOS)}"
        _, body = client.ask("GET", f"/api/kernels/{repo}/revision/main")
        sha = json.loads(body)["sha"]
        _, body = client.ask("GET", f"/api/kernels/{repo}/tree/{sha}?recursive=true")
        names = [e["path"] for e in json.loads(body) if e["path"].endswith(".txt")]
        if not names:
            continue
        name = rng.choice(names)
        _, text = client.ask("GET", f"/kernels/{repo}/resolve/{sha}/{name}")
        digest, _, rest = text.partition(b" ")
        assert hashlib.sha256(rest).hexdigest() == digest.decode(), "a torn file"
        if rng.random() < 0.1:  # the large file of the same commit is of the same generation
            publisher, generation = rest.split(b" ")[:2]
            _, large = client.ask("GET", f"/kernels/{repo}/resolve/{sha}/{name[:-4]}.bin")
            assert large == large_of(publisher.decode(), int(generation)), "two files of one commit do not fit"


def memory():
    with open(f"/proc/{registry.process.pid}/status") as file:
        return next(int(row.split()[1]) // 1024 for row in file if row.startswith("VmRSS"))


def soak():
    client = Client()
    for i in range(REPOS):
        client.ask("POST", "/api/repos/create", json.dumps({"name": f"k{i}", "organization": "acme", "type": "kernel"}))
    failures, acknowledged, samples = [], [[] for _ in range(publishers)], []

    def guarded(work, *arguments):
        try:
            work(*arguments)
        except Exception as error:  # any of them is a finding
            failures.append(repr(error))
    threads = [threading.Thread(target=guarded, args=(work_as_publisher, i, acknowledged[i])) for i in range(publishers)]
    threads += [threading.Thread(target=guarded, args=(work_as_reader, i)) for i in range(readers)]
    for thread in threads:
        thread.start()
    while time.time() < stop:
        time.sleep(min(1, seconds / 20))
        samples.append(memory())
    for thread in threads:
        thread.join()
    assert not failures, failures[:5]
    assert not unexpected, unexpected[:5]
    client = Client()  # the first one was silent for too long to be kept
    for i in range(REPOS):
        check_history(client, f"acme/k{i}", acknowledged)
    early, late = max(samples[len(samples) // 3:2 * len(samples) // 3]), max(samples[2 * len(samples) // 3:])
    assert late <= early * 1.2 + 8, samples
    registry.stop()
    assert registry.fsck()["problems"] == []
    print(json.dumps({"seconds": seconds, "commits": sum(map(len, acknowledged)), "requests": sum(counts.values()), "answers": dict(counts),
                      "rss_mb": {"middle_third": early, "last_third": late}}, sort_keys=True), flush=True)


def check_history(client, repo, acknowledged):
    commits, page = [], f"/api/kernels/{repo}/commits/main?limit=1000"
    while True:
        _, body = client.ask("GET", page)
        rows = [c["id"] for c in json.loads(body)]
        commits += rows
        if len(rows) < 2:
            break
        page = f"/api/kernels/{repo}/commits/{commits.pop()}?limit=1000"
    mine = [entry for list_ in acknowledged for entry in list_ if entry[0] == repo]
    lost = {commit for _, commit, _ in mine} - set(commits)
    assert not lost, f"{repo}: {len(lost)} acknowledged commits are not in the history"
    for number, list_ in enumerate(acknowledged):
        if list_ and list_[-1][0] == repo:
            _, text = client.ask("GET", f"/kernels/{repo}/resolve/main/p{number}.txt")
            assert text == content_of(f"p{number}", list_[-1][2]), f"the last update of p{number} is lost"


try:
    run_tests([soak])
finally:
    if registry.process.poll() is None:
        registry.stop(signal.SIGKILL)
    shutil.rmtree(registry.dir, ignore_errors=True)
