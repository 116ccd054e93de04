# SPDX-License-Identifier: Apache-2.0
"""registry_xet.py KERNEL_BUILDER: stock huggingface_hub with hf_xet uploads to our registry, and gets equal bytes back."""
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

from registry_server import Registry, run_tests

registry = Registry(os.path.abspath(sys.argv[1]))
endpoint = registry.start()
port = endpoint.rsplit(":", 1)[1]
work = tempfile.mkdtemp(prefix="kb-xet-")
tokens = {"alice": registry.token("alice", "--namespace", "acme", "--namespace", "alice"), "bob": registry.token("bob")}
REPO = "acme/relu"


def run(code, *arguments, user="alice", home="home", expect=0):
    """Python code in a client of its own, with its own caches."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    env.update(HF_ENDPOINT=endpoint, HF_HOME=os.path.join(work, home), HF_TOKEN=tokens[user], HF_HUB_DISABLE_PROGRESS_BARS="1",
               NO_PROXY="127.0.0.1", HF_XET_TELEMETRY_ENABLED="0")
    done = subprocess.run([sys.executable, "-c", "import sys\nfrom huggingface_hub import *\napi = HfApi()\n" + code, *arguments],
                          env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) == (expect == 0), done.stdout + done.stderr[-3000:]
    return done.stdout + done.stderr


UPLOAD = "api.create_repo(sys.argv[1], repo_type=sys.argv[2], exist_ok=True)\n" \
         "api.upload_folder(repo_id=sys.argv[1], repo_type=sys.argv[2], folder_path=sys.argv[3])\n"
DOWNLOAD = "snapshot_download(sys.argv[1], repo_type=sys.argv[2], local_dir=sys.argv[3])\n"


class Watch:
    """The requests that came since it was made."""

    def __init__(self):
        self.path = os.path.join(registry.dir, "log")
        self.start = os.path.getsize(self.path)

    def count(self, method, part):
        with open(self.path) as file:
            file.seek(self.start)
            rows = [json.loads(line) for line in file if line.startswith("{") and line.endswith("\n")]
        return sum(row["method"] == method and part in row["path"] and row["status"] == 200 for row in rows)


def folder(name, files):
    place = os.path.join(work, name)
    for path, content in files.items():
        os.makedirs(os.path.dirname(os.path.join(place, path)), exist_ok=True)
        with open(os.path.join(place, path), "wb") as file:
            file.write(content)
    return place


def digests(place):
    found = {}
    for base, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != ".cache"]
        for name in names:
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, place)] = hashlib.sha256(file.read()).hexdigest()
    return found


def check_equal(repo, kind, place, home="reader"):
    back = os.path.join(work, f"back-{random.getrandbits(48):x}")
    run(DOWNLOAD, repo, kind, back, home=home)
    got = digests(back)
    got.pop(".gitattributes", None)
    assert got == digests(place), (sorted(got), sorted(digests(place)))


def files_of(seed):
    dice = random.Random(seed)
    return {"README.md": b"---\nlicense: apache-2.0\n---\n",
            "build/torch-cpu/metadata.json": json.dumps({"id": "_relu_1", "name": "relu", "version": 1, "license": "Apache-2.0",
                                                         "python-depends": [], "backend": {"type": "cpu"}}).encode(),
            "build/torch-cpu/__init__.py": b"def double(x):\n    return 2 * x\n",
            "build/torch-cpu/random.so": dice.randbytes(66 << 20),               # two xorbs
            "build/torch-cpu/text.so": b"".join(b"line %d of %d\n" % (i, seed) for i in range(500_000)),  # LZ4
            "build/torch-cpu/floats.so": struct.pack("<2300000f", *(i / 1024 for i in range(2_300_000))),  # grouped bytes
            "build/torch-cpu/zeros.so": bytes(9 << 20),
            "build/torch-cpu/odd.so": dice.randbytes((9 << 20) + 1)}


FILES = files_of(1)


def a_folder_goes_up_by_chunks_and_comes_back():
    place = folder("one", FILES)
    watch = Watch()
    run(UPLOAD, REPO, "kernel", place)
    assert watch.count("POST", "/api/xet/v1/xorbs/") >= 2 and watch.count("POST", "/api/xet/v1/shards") >= 1
    assert watch.count("POST", "info/lfs/objects/batch") == 0 and watch.count("PUT", "/api/lfs/") == 0
    check_equal(REPO, "kernel", place)
    kept = [name for _, _, names in os.walk(os.path.join(registry.root, "xet")) for name in names if name.endswith(".data")]
    assert kept == [], kept


def an_unchanged_folder_sends_no_xorb():
    watch = Watch()
    run(UPLOAD, REPO, "kernel", folder("one", FILES))
    assert watch.count("POST", "/api/xet/v1/xorbs/") == 0


def a_changed_file_sends_its_new_chunks_only():
    changed = {path: FILES[path] for path in ("README.md", "build/torch-cpu/random.so")}
    old = FILES["build/torch-cpu/random.so"]
    changed["build/torch-cpu/random.so"] = old[:30 << 20] + b"a few other bytes" + old[(30 << 20) + 5:]
    place = folder("two", changed)
    before = blob_bytes()
    watch = Watch()
    run(UPLOAD, REPO, "kernel", place)
    assert watch.count("POST", "/api/xet/v1/xorbs/") == 1
    assert blob_bytes() - before >= 66 << 20  # whole files lie in blobs, so everybody reads them without Xet
    back = os.path.join(work, "two-back")
    run(DOWNLOAD, REPO, "kernel", back)
    assert digests(back)["build/torch-cpu/random.so"] == digests(place)["build/torch-cpu/random.so"]


def blob_bytes():
    return sum(os.path.getsize(os.path.join(base, name)) for base, _, names in os.walk(os.path.join(registry.root, "blobs"))
               for name in names)


def chunks_serve_another_repository_of_the_same_user():
    place = folder("one", FILES)
    watch = Watch()
    run(UPLOAD, "acme/again", "model", place)
    assert watch.count("POST", "/api/xet/v1/xorbs/") == 0
    check_equal("acme/again", "model", place)


def another_client_and_another_user_send_their_own():
    place = folder("some", {path: FILES[path] for path in ("build/torch-cpu/odd.so", "build/torch-cpu/floats.so", "README.md")})
    for user, repo, home in (("alice", REPO, "fresh"), ("bob", "bob/relu", "bob")):
        watch = Watch()
        run(UPLOAD, repo, "kernel", place, user=user, home=home)
        assert watch.count("POST", "/api/xet/v1/shards") == 1
    back = os.path.join(work, "bobs")
    run(DOWNLOAD, "bob/relu", "kernel", back, user="bob", home="bob")
    assert digests(back)["build/torch-cpu/odd.so"] == digests(place)["build/torch-cpu/odd.so"]


def the_kernels_client_loads_it():
    run("api.create_branch('acme/relu', branch='v1', repo_type='kernel')\n")
    told = run("from kernels import get_kernel\nprint(get_kernel('acme/relu', version=1, backend='cpu').double(21))\n", home="loader")
    assert "42" in told, told


def a_pull_request_goes_by_chunks_too():
    place = folder("pr", {"big.bin": random.Random(7).randbytes(9 << 20)})
    told = run("info = api.create_commit(sys.argv[1], [CommitOperationAdd('big.bin', sys.argv[2])], commit_message='m', "
               "repo_type='model', create_pr=True)\nprint(info.pr_revision)\n", "acme/again", os.path.join(place, "big.bin"))
    assert "refs/pr/1" in told, told


def a_folder_as_a_pull_request():
    place = folder("prs", {"big.bin": random.Random(9).randbytes(9 << 20), "small.txt": b"x"})
    told = run("info = api.upload_folder(repo_id=sys.argv[1], repo_type='model', folder_path=sys.argv[2], create_pr=True)\n"
               "print(info.pr_url, [d.num for d in api.get_repo_discussions(sys.argv[1])])\n", "acme/again", place)
    assert "/discussions/2 [2, 1]" in told, told
    back = os.path.join(work, "pr-back")
    run("snapshot_download(sys.argv[1], revision='refs/pr/2', local_dir=sys.argv[2], allow_patterns=['big.bin', 'small.txt'])\n", "acme/again", back)
    assert digests(back) == digests(place)


def a_server_killed_meanwhile_loses_nothing():
    global endpoint
    place = folder("killed", {"big.bin": random.Random(8).randbytes(70 << 20), "README.md": b"# x\n"})
    env = dict(os.environ, HF_ENDPOINT=endpoint, HF_HOME=os.path.join(work, "killed-home"), HF_TOKEN=tokens["alice"],
               HF_HUB_DISABLE_PROGRESS_BARS="1", NO_PROXY="127.0.0.1")
    for point in ("/api/xet/v1/xorbs/", "/api/xet/v1/shards"):
        watch = Watch()
        client = subprocess.Popen([sys.executable, "-c", "import sys\nfrom huggingface_hub import *\napi = HfApi()\n" + UPLOAD,
                                   "acme/killed", "model", place], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while client.poll() is None and not watch.count("POST", point):
            pass
        registry.stop(signal.SIGKILL)
        client.kill()
        client.wait()
        endpoint = registry.start(listen="127.0.0.1:" + port)
        assert registry.fsck()["problems"] == []
    run(UPLOAD, "acme/killed", "model", place, home="killed-home")
    check_equal("acme/killed", "model", place)


def the_registry_is_sound():
    assert registry.fsck()["problems"] == []
    registry.stop()
    registry.run("registry", "gc", "--root", registry.root, "--grace", "0")
    assert registry.fsck()["problems"] == []
    registry.start(listen="127.0.0.1:" + port)
    check_equal("acme/again", "model", folder("one", FILES))


try:
    run_tests([a_folder_goes_up_by_chunks_and_comes_back, an_unchanged_folder_sends_no_xorb,
               a_changed_file_sends_its_new_chunks_only, chunks_serve_another_repository_of_the_same_user,
               another_client_and_another_user_send_their_own, the_kernels_client_loads_it, a_pull_request_goes_by_chunks_too,
               a_folder_as_a_pull_request,                a_server_killed_meanwhile_loses_nothing, the_registry_is_sound])
finally:
    registry.stop()
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(registry.dir, ignore_errors=True)
