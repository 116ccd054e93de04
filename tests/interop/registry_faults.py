# SPDX-License-Identifier: Apache-2.0
"""registry_faults.py KERNEL_BUILDER: the uploader through a proxy that harms its requests; uploader and server killed, and their disk full,
at every file operation. Always: one commit, right contents, a clean fsck, and nothing confirmed is sent twice."""
import collections
import concurrent.futures
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from registry_server import Registry, make_kernel, run_tests

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from fault_proxy import FaultProxy  # noqa: E402

tool = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp(prefix="kb-faults-")
seed = int(os.environ.get("KB_TEST_SEED", random.randrange(1 << 30)))
rng = random.Random(seed)
print(f"seed {seed}")
preload = os.path.join(work, "fault_at.so")
subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", preload, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/fault_at.c"),
                "-ldl"], check=True)
registry = Registry(tool)
registry.start()
token = registry.token("alice", "--namespace", "acme")
os.environ.update(HF_TOKEN=token, KERNEL_BUILDER_STORE=os.path.join(work, "store"))
for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
    os.environ.pop(name, None)
PART = 32 << 20


def environment(**more):
    return dict(os.environ, HF_ENDPOINT=registry.endpoint, NO_PROXY="" if "http_proxy" in more else "127.0.0.1",
                no_proxy="" if "http_proxy" in more else "127.0.0.1", **more)


def get(path):
    with urllib.request.urlopen(registry.endpoint + path, timeout=60) as answer:
        return answer.read()


def forget(folder):
    """What the uploader remembers of a folder, so that the next upload is a first one."""
    shutil.rmtree(os.path.join(work, "upload"), ignore_errors=True)


def check_published(folder, repo):
    """Exactly one commit of ours on v1, and every file as it lies in `folder`."""
    commits = json.loads(get(f"/api/kernels/{repo}/commits/v1?limit=100"))
    mine = [c for c in commits if c["title"].startswith("Uploaded using")]
    assert len(mine) == 1, [c["title"] for c in commits]
    build = os.path.join(folder, "build")
    for base, _, names in os.walk(build):
        for name in names:
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                wanted = hashlib.sha256(file.read()).hexdigest()
            found = hashlib.sha256(get(f"/kernels/{repo}/resolve/v1/build/{os.path.relpath(path, build)}")).hexdigest()
            assert found == wanted, path


def every(n, fault, methods=("GET", "POST", "PUT")):
    """Each n-th request, but none of them for ever: a request that was harmed twice passes."""
    return lambda r: fault if r.method in methods and r.number % n == 0 and r.time < 2 else None


def first(fault, times=1, methods=("GET", "POST", "PUT")):
    return lambda r: fault if r.method in methods and r.time < times else None


def at_random(faults, share):
    return lambda r: rng.choice(faults) if r.time < 3 and rng.random() < share else None


PLANS = {
    "dropped": every(2, "drop"),
    "lost-answers": first("lose"),
    "lost-writes": first("lose", 2, ("POST",)),
    "cut-bodies": first("cut", 1, ("PUT", "POST")),
    "truncated": first("truncate"),
    "busy-429": first("status 429 1"),
    "burst-503": first("status 503", 2),
    "gateway-502-504": lambda r: ("status 502", "status 504")[r.time] if r.time < 2 and r.method != "GET" else None,
    "stalled": first("stall 1.5", 1, ("PUT", "POST")),
    "slow": lambda r: "slow 60000000" if r.method == "PUT" else None,
    "all-of-them": at_random(["drop", "lose", "cut", "truncate", "status 429 1", "status 503", "stall 0.5"], 0.5),
}


def through(name):
    folder = make_kernel(tool, work, name, {"torch-cpu": 2 * PART + 1000, "torch-cuda": 300})
    proxy = FaultProxy(PLANS[name])
    start = time.time()
    done = subprocess.run([tool, "upload", folder, "--repo-id", f"acme/{name}", "-q"], capture_output=True, text=True, timeout=300,
                          env=environment(http_proxy=proxy.url))
    proxy.stop()
    assert done.returncode == 0, (name, done.returncode, done.stderr, proxy.faults)
    assert proxy.faults, (name, "nothing was harmed")
    check_published(folder, f"acme/{name}")
    shutil.rmtree(folder)
    return f"     {name}: {len(proxy.faults)} of {sum(proxy.times.values())} requests harmed, {time.time() - start:.1f} s"


def every_fault_ends_in_one_right_commit():
    """Side by side: most of the time they wait."""
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for text in pool.map(through, PLANS):
            print(text, flush=True)


def a_registry_that_stays_down_is_named():
    folder = make_kernel(tool, work, "down", {"torch-cpu": 300})
    proxy = FaultProxy(lambda r: "status 429 3000")
    done = subprocess.run([tool, "upload", folder, "--repo-id", "acme/down", "-q"], capture_output=True, text=True, timeout=60,
                          env=environment(http_proxy=proxy.url))
    proxy.stop()
    assert done.returncode == 5 and "429" in done.stderr, (done.returncode, done.stderr)


def sent_objects(mark):
    """How often each object or part was stored, by the registry's log from byte `mark` on."""
    with open(os.path.join(registry.dir, "log"), "rb") as log:
        log.seek(mark)
        rows = [json.loads(line) for line in log if line.startswith(b"{")]
    return collections.Counter(r["path"] for r in rows if r["method"] == "PUT" and r["status"] == 200)


def the_uploader_is_killed_at_any_time():
    folder = make_kernel(tool, work, "killed", {"torch-cpu": 4 * PART, "torch-cuda": 20_000_000})
    mark = os.path.getsize(os.path.join(registry.dir, "log"))
    start = time.time()
    subprocess.run([tool, "upload", folder, "--repo-id", "acme/measure", "-q"], check=True, capture_output=True, env=environment())
    span = time.time() - start
    forget(folder)
    mark = os.path.getsize(os.path.join(registry.dir, "log"))
    kills = 0
    for _ in range(8):
        process = subprocess.Popen([tool, "upload", folder, "--repo-id", "acme/killed", "-q"], env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=rng.uniform(0.01, span * 0.7))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    done = subprocess.run([tool, "upload", folder, "--repo-id", "acme/killed", "-q"], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    check_published(folder, "acme/killed")
    sent = sent_objects(mark)
    again = sum(n - 1 for n in sent.values())
    assert kills > 0 and again <= 4 * kills, (kills, sent)  # 4 streams: what was in flight at each kill
    print(f"     {kills} kills, {len(sent)} objects and parts, {again} of them sent again", flush=True)


def killed_at(ops):
    """Runs of the uploader that die at file operation 1, 2, 3 ...; until one does not."""
    def test():
        for n in range(1, 200):
            repo = f"acme/client-{ops}-{n}"
            folder = make_kernel(tool, work, f"client-{ops}-{n}", {"torch-cpu": 9_000_000, "torch-cuda": 300})
            os.makedirs(os.path.join(work, "upload"), exist_ok=True)
            done = subprocess.run([tool, "upload", folder, "--repo-id", repo, "-q"], capture_output=True, text=True, timeout=60,
                                  env=environment(LD_PRELOAD=preload, FAULT_OPS=ops, FAULT_BELOW=work, FAULT_AT=str(n), FAULT_DO="kill"))
            if done.returncode == 0:
                break
            assert done.returncode == -signal.SIGKILL, (done.returncode, done.stderr)
            again = subprocess.run([tool, "upload", folder, "--repo-id", repo, "-q"], capture_output=True, text=True, timeout=60,
                                   env=environment())
            assert again.returncode == 0, again.stderr
            check_published(folder, repo)
            shutil.rmtree(folder)
        assert n > 1, "it was never killed"
        print(f"     killed at each of {n - 1} operations", flush=True)
    test.__name__ = f"the_uploader_is_killed_at_each_{ops}"
    return test


class Server:
    """A registry of its own whose server is harmed at an operation below its root."""

    def __init__(self, ops, at, do):
        global registry
        self.before = registry
        registry = self.own = Registry(tool)
        os.environ["HF_TOKEN"] = self.own.token("alice", "--namespace", "acme")
        os.environ.update(LD_PRELOAD=preload, FAULT_OPS=ops, FAULT_BELOW=self.own.root + "/", FAULT_AT=str(at), FAULT_DO=do)
        try:
            self.own.start()
            self.up = True
        except AssertionError:
            self.up = False
        for name in ("LD_PRELOAD", "FAULT_OPS", "FAULT_BELOW", "FAULT_AT", "FAULT_DO"):
            del os.environ[name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        global registry
        if self.own.process.poll() is None:
            self.own.stop(signal.SIGKILL)
        shutil.rmtree(self.own.dir)
        registry = self.before
        os.environ["HF_TOKEN"] = token


def server_folder():
    folder = os.path.join(work, "server")
    return folder if os.path.exists(folder) else make_kernel(tool, work, "server", {"torch-cpu": 9_000_000, "torch-cuda": 300})


def upload_again(folder, n):
    """After the fault: nothing is damaged, and the same command finishes."""
    report = registry.fsck()
    assert report["problems"] == [], (n, report)
    registry.start()
    done = subprocess.run([tool, "upload", folder, "--repo-id", "acme/k", "-q"], capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 0, (n, done.stderr)
    check_published(folder, "acme/k")
    registry.stop()
    assert registry.fsck()["problems"] == []


def killed_once(folder, server):
    """Uploads to a server that may die meanwhile; true when it lived."""
    if not server.up:
        return False
    process = subprocess.Popen([tool, "upload", folder, "--repo-id", "acme/k", "-q"], env=environment(), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None and registry.process.poll() is None:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()  # it would wait for the server
    if process.wait() == 0 and registry.process.poll() is None:
        check_published(folder, "acme/k")
        return True
    return False


def server_killed_at(ops, step):
    def test():
        folder = server_folder()
        for n in range(1, 400, step):
            forget(folder)
            with Server(ops, n, "kill") as server:
                if killed_once(folder, server):
                    break
                assert registry.process.wait(timeout=10) == -signal.SIGKILL
                upload_again(folder, n)
        assert n > 1, "it was never killed"
        print(f"     killed at {(n - 1) // step} operations", flush=True)
    test.__name__ = f"the_server_is_killed_at_{ops}_each_{step}"
    return test


def the_servers_disk_is_full_at(ops, step):
    def test():
        folder = server_folder()
        for n in range(1, 400, step):
            forget(folder)
            with Server(ops, n, "28") as server:
                if server.up:
                    done = subprocess.run([tool, "upload", folder, "--repo-id", "acme/k", "-q"], capture_output=True, text=True, timeout=120,
                                          env=environment())
                    if done.returncode == 0:
                        check_published(folder, "acme/k")
                        break
                    assert done.returncode == 5 and "507" in done.stderr, done.stderr
                    assert get("/health").strip() == b"OK"  # it lives, and reads
                    registry.stop(signal.SIGKILL)
                upload_again(folder, n)
        assert n > 1, "the disk was never full"
        print(f"     full from {(n - 1) // step} operations on", flush=True)
    test.__name__ = f"the_servers_disk_is_full_at_{ops}_each_{step}"
    return test


def a_real_full_disk():
    """A tmpfs of 24 MB in a namespace of its own: refused with 507, nothing half, smaller things still go."""
    script = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[2])
from registry_server import Registry, make_kernel
tool, place = sys.argv[1], sys.argv[3]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], check=True)
import tempfile
tempfile.tempdir = place
registry = Registry(tool)
registry.log = open(os.devnull, "ab")
registry.start()
env = dict(os.environ, HF_ENDPOINT=registry.endpoint, HF_TOKEN=registry.token("alice", "--namespace", "acme"))
def upload(folder):
    return subprocess.run([tool, "upload", folder, "--repo-id", "acme/" + os.path.basename(folder), "-q"], env=env, capture_output=True, text=True)
work = sys.argv[4]
large = upload(make_kernel(tool, work, "toolarge", {"torch-cpu": 30_000_000}))
assert large.returncode == 5 and "507" in large.stderr, (large.returncode, large.stderr)
small = upload(make_kernel(tool, work, "small", {"torch-cpu": 9_000_000}))
assert small.returncode == 0, small.stderr
registry.stop()
report = registry.fsck()
assert report["problems"] == [] and report["temporaries"] == 0, report
print("full disk ok")
"""
    place = os.path.join(work, "tmpfs")
    os.makedirs(place)
    done = subprocess.run(["unshare", "-Urm", sys.executable, "-c", script, tool, os.path.dirname(os.path.abspath(__file__)), place, work],
                          capture_output=True, text=True, timeout=120)
    assert "full disk ok" in done.stdout, done.stdout + done.stderr


def a_slow_link():
    """40 Mbit/s by a token bucket on the loopback of a network namespace: parts that were confirmed before a kill are not sent again."""
    script = """
import json, os, subprocess, sys, time
sys.path.insert(0, sys.argv[2])
from registry_server import Registry, make_kernel
tool, work = sys.argv[1], sys.argv[3]
for command in ("ip link set lo mtu 1500 up", "tc qdisc add dev lo root tbf rate 40mbit burst 32kb latency 200ms"):
    subprocess.run(command.split(), check=True)
registry = Registry(tool)
settings = os.path.join(registry.root, "registry.toml")
text = open(settings).read()
open(settings, "w").write("".join("part-bytes = 1048576\\n" if line.startswith("part-bytes") else line for line in text.splitlines(True)))
registry.start()
env = dict(os.environ, HF_ENDPOINT=registry.endpoint, HF_TOKEN=registry.token("alice", "--namespace", "acme"))
folder = make_kernel(tool, work, "slow", {"torch-cpu": 12 << 20})
command = [tool, "upload", folder, "--repo-id", "acme/slow", "-q", "--json"]
first = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
time.sleep(1.5)
assert first.poll() is None, "the link is not slow"
first.kill()
first.wait()
start = time.time()
again = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
took = time.time() - start
assert again.returncode == 0, again.stderr
sent = json.loads(again.stdout)["transfer"]["bytes-sent"]
assert 0 < sent < 11 << 20, sent
assert took > sent / 5e6 * 0.7, (took, sent)
back = subprocess.run(["curl", "-sf", "--noproxy", "*", registry.endpoint + "/kernels/acme/slow/resolve/v1/build/torch-cpu/data.bin"], capture_output=True, timeout=60)
assert back.stdout == open(os.path.join(folder, "build/torch-cpu/data.bin"), "rb").read()
registry.stop()
print("slow link ok:", sent >> 20, "of 12 MiB again in", round(took, 1), "s")
"""
    if not shutil.which("tc") or not shutil.which("ip"):
        print("     SKIPPED: no tc and ip (iproute2)", flush=True)
        return
    done = subprocess.run(["unshare", "-Urn", sys.executable, "-c", script, tool, os.path.dirname(os.path.abspath(__file__)), work],
                          capture_output=True, text=True, timeout=180)
    assert "slow link ok" in done.stdout, done.stdout + done.stderr
    print("     " + done.stdout.strip(), flush=True)


def a_read_only_folder():
    """Below a read-only mount the server says so and ends; fsck and reading an uploader's folder still work."""
    own = Registry(tool)
    script = f"""
mount --bind {own.root} {own.root} && mount -o remount,bind,ro {own.root} || exit 99
{tool} registry serve --root {own.root} --listen 127.0.0.1:0
echo "code $?"
"""
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True, text=True, timeout=30)
    assert "code 5" in done.stdout and own.root in done.stderr and "ead-only" in done.stderr, done.stdout + done.stderr
    assert own.fsck()["problems"] == []
    shutil.rmtree(own.dir)
    # An uploader whose folder cannot be written keeps its journal nowhere: it says so before it sends, or needs none.
    folder = make_kernel(tool, work, "readonly", {"torch-cpu": 300})
    script = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec {tool} upload {folder} --repo-id acme/readonly -q"
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 0, done.stderr
    check_published(folder, "acme/readonly")


try:
    run_tests([
        every_fault_ends_in_one_right_commit, a_registry_that_stays_down_is_named, the_uploader_is_killed_at_any_time, killed_at("write"), killed_at("fsync"), killed_at("rename"),
        server_killed_at("fsync", 1), server_killed_at("rename", 1), server_killed_at("write", 7), the_servers_disk_is_full_at("write", 11),
        the_servers_disk_is_full_at("open", 2), a_real_full_disk, a_read_only_folder, a_slow_link])
finally:
    if registry.process and registry.process.poll() is None:
        registry.stop(signal.SIGKILL)
    shutil.rmtree(registry.dir, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
