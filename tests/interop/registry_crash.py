# SPDX-License-Identifier: Apache-2.0
"""registry_crash.py KERNEL_BUILDER: kill -9 of the server while it commits; what was acknowledged is there, nothing is half."""
import base64
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

ROUNDS = 8
registry = Registry(os.path.abspath(sys.argv[1]))
token = registry.token("acme")
seed = random.randrange(1 << 30)
rng = random.Random(seed)
print(f"seed {seed}")


def ask(method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(registry.endpoint).netloc, timeout=20)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {token}", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def line(key, value):
    return json.dumps({"key": key, "value": value}) + "\n"


def publish(name, generation):
    """One commit of two files that belong together, one of them large; returns its id."""
    content = hashlib.sha256(f"{name} {generation}".encode()).digest() * 20_000
    oid = hashlib.sha256(content).hexdigest()
    status, body = ask("POST", "/kernels/acme/k.git/info/lfs/objects/batch",
                       json.dumps({"operation": "upload", "objects": [{"oid": oid, "size": len(content)}]}))
    assert status == 200, body
    for action in (json.loads(body)["objects"][0].get("actions") or {},):
        if "upload" in action:
            href = urllib.parse.urlsplit(action["upload"]["href"])
            status, body = ask("PUT", f"{href.path}?{href.query}", content)
            assert status == 200, body
    text = base64.b64encode(oid.encode()).decode()
    status, body = ask("POST", "/api/kernels/acme/k/commit/main",
                       line("header", {"summary": f"{name} {generation}"})
                       + line("file", {"path": f"{name}/digest", "content": text, "encoding": "base64"})
                       + line("lfsFile", {"path": f"{name}/data", "algo": "sha256", "oid": oid, "size": len(content)}))
    assert status == 200, body
    return json.loads(body)["commitOid"]


def history():
    commits, url = [], "/api/kernels/acme/k/commits/main?limit=100"
    while True:
        status, body = ask("GET", url)
        assert status == 200, body
        page = json.loads(body)
        commits += [c["id"] for c in page]
        if len(page) < 100:
            return commits
        url = f"/api/kernels/acme/k/commits/{commits.pop()}?limit=100"


def check_whole(names):
    """The two files of each name fit: readers never see one without the other."""
    for name in names:
        status, wanted = ask("GET", f"/kernels/acme/k/resolve/main/{name}/digest")
        if status == 404:
            continue
        status, data = ask("GET", f"/kernels/acme/k/resolve/main/{name}/data")
        assert status == 200 and hashlib.sha256(data).hexdigest() == wanted.decode(), name


def killed_while_committing():
    registry.start()
    assert ask("POST", "/api/repos/create", json.dumps({"name": "k", "type": "kernel"}))[0] == 200
    names = [f"w{i}" for i in range(4)]
    acknowledged, lock, total = [], threading.Lock(), 0
    for round_number in range(ROUNDS):
        stop = threading.Event()

        def work(name):
            generation = 0
            while not stop.is_set():
                generation += 1
                try:
                    commit = publish(name, f"{round_number}.{generation}")
                except (OSError, http.client.HTTPException):
                    return  # the server is gone
                with lock:
                    acknowledged.append(commit)
        workers = [threading.Thread(target=work, args=(name,)) for name in names]
        for worker in workers:
            worker.start()
        time.sleep(0.2 + rng.random())
        registry.stop(signal.SIGKILL)
        stop.set()
        for worker in workers:
            worker.join()
        report = registry.fsck()
        assert report["problems"] == [], report
        registry.start()
        lost = set(acknowledged) - set(history())
        assert not lost, f"round {round_number}: {lost}"
        check_whole(names)
        total = len(acknowledged)
    assert total >= ROUNDS, f"only {total} commits were made"
    print(f"     {total} commits acknowledged over {ROUNDS} kills", flush=True)


def stopped_by_a_signal():
    assert registry.stop(signal.SIGTERM) == 0
    registry.start()
    first = registry.process
    refused = False
    try:
        registry.start()
    except AssertionError as error:
        refused = "another process" in str(error)
    registry.process = first
    assert refused
    assert registry.stop(signal.SIGINT) == 0
    assert registry.fsck()["problems"] == []


try:
    run_tests([killed_while_committing, stopped_by_a_signal])
finally:
    if registry.process and registry.process.poll() is None:
        registry.stop(signal.SIGKILL)
    shutil.rmtree(registry.dir, ignore_errors=True)
