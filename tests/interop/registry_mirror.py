# SPDX-License-Identifier: Apache-2.0
"""registry_mirror.py KERNEL_BUILDER: kernels taken over by `registry mirror`, from our registry and from an independent server, and loaded
by the stock client (kernels 0.17.2) on a machine without a network."""
import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from registry_server import Registry, SlowProxy, make_kernel, run_tests

tool = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
work = tempfile.mkdtemp(prefix="kb-mirror-")
there = Registry(tool)
there.start()
alice = there.token("alice", "--namespace", "acme")
os.environ.update(HF_HOME=os.path.join(work, "home"), HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_PROGRESS_BARS="1", NO_PROXY="127.0.0.1",
                  KERNEL_BUILDER_STORE=os.path.join(work, "store"))
os.environ.pop("HF_TOKEN", None)
INIT = "import os\n\ndef double(x):\n    return 2 * x\n\n\ndef size():\n    return os.path.getsize(os.path.join(os.path.dirname(__file__), 'data.bin'))\n"


def upload(folder, repo, endpoint, token, *options):
    subprocess.run([tool, "upload", folder, "--repo-id", repo, "-q", *options], check=True, capture_output=True,
                   env=dict(os.environ, HF_ENDPOINT=endpoint, HF_TOKEN=token))


def mirror(root, source, *options, expect=0, **variables):
    done = subprocess.run([tool, "registry", "mirror", "--root", root, "--from", source, "--json", *options], capture_output=True, text=True,
                          env=dict(os.environ, **variables), timeout=120)
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)["repositories"] if expect == 0 else done.stderr


def new_registry():
    here = Registry(tool)
    return here


def bytes_of(folder):
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def a_version_is_taken_over_whole():
    folder = make_kernel(tool, work, "whole", {"torch-cpu": 20 << 20, "torch-cuda": 3000}, init=INIT)
    upload(folder, "acme/whole", there.endpoint, alice)
    copy = new_registry()
    report = mirror(copy.root, there.endpoint, "--repo", "acme/whole")[0]
    assert report["bytes-fetched"] > 20 << 20 and [b["branch"] for b in report["branches"]] == ["main", "v1"], report
    again = mirror(copy.root, there.endpoint, "--repo", "kernels/acme/whole")[0]
    assert again["bytes-fetched"] == 0 and all(b["added"] == 0 for b in again["branches"]), again
    assert copy.fsck()["problems"] == []
    copy.start()
    from huggingface_hub import HfApi
    place = HfApi(endpoint=copy.endpoint, token=False).snapshot_download("acme/whole", repo_type="kernel", revision="v1", cache_dir=os.path.join(work, "c"))
    got = {path: digest for path, digest in bytes_of(place).items() if path.startswith("build/")}
    assert got == {os.path.join("build", path): digest for path, digest in bytes_of(os.path.join(folder, "build")).items()}
    # Works beside the server, too.
    again = mirror(copy.root, there.endpoint, "--repo", "acme/whole")[0]
    assert [branch["added"] for branch in again["branches"]] == [0, 0], again
    copy.stop()
    shutil.rmtree(copy.dir)


def a_killed_mirror_goes_on():
    folder = make_kernel(tool, work, "killed", {"torch-cpu": 40 << 20})
    upload(folder, "acme/killed", there.endpoint, alice)
    copy = new_registry()
    proxy = SlowProxy(there.endpoint, answer_rate=16 << 20)
    command = [tool, "registry", "mirror", "--root", copy.root, "--from", f"http://127.0.0.1:{proxy.port}", "--repo", "acme/killed", "-q"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    staged = os.path.join(copy.root, "parts")

    def here_already():
        return max((os.path.getsize(os.path.join(staged, name)) for name in os.listdir(staged)), default=0) if os.path.isdir(staged) else 0
    deadline = time.time() + 60
    while here_already() < 8 << 20 and time.time() < deadline:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = here_already()
    assert copy.fsck()["problems"] == []
    report = mirror(copy.root, there.endpoint, "--repo", "acme/killed")[0]
    assert report["bytes-here"] >= kept and report["bytes-fetched"] < (40 << 20), (kept, report)
    assert copy.fsck()["problems"] == [] and os.listdir(staged) == []
    shutil.rmtree(copy.dir)


def a_private_source_wants_its_own_token():
    folder = make_kernel(tool, work, "private", {"torch-cpu": 1000})
    upload(folder, "acme/private", there.endpoint, alice, "--private")
    copy = new_registry()
    assert "--token-file" in mirror(copy.root, there.endpoint, "--repo", "acme/private", expect=5, HF_TOKEN=alice)
    with open(os.path.join(work, "token"), "w") as file:
        file.write(alice + "\n")
    assert mirror(copy.root, there.endpoint, "--repo", "acme/private", "--private", "--token-file", os.path.join(work, "token"))
    with open(os.path.join(there.dir, "log")) as log:
        assert alice not in log.read()
    shutil.rmtree(copy.dir)


def an_independent_server_is_a_source_too():
    folder = make_kernel(tool, work, "probe", {"torch-cpu": 300_000})
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, os.path.join(here, "probe_hub.py"), str(port), os.path.join(work, "trace")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        upload(folder, "acme/k", endpoint, "hf_alice")
        copy = new_registry()
        report = mirror(copy.root, endpoint, "--repo", "acme/k", "--version", "1", "--variant", "torch-cpu")[0]
        assert [b["branch"] for b in report["branches"]] == ["v1"] and report["bytes-fetched"] >= 300_000, report
        assert copy.fsck()["problems"] == []
        shutil.rmtree(copy.dir)
    finally:
        server.terminate()
        server.wait()


class Shrunk(http.server.BaseHTTPRequestHandler):
    """Our registry, but of each file it says that the wanted part is not there."""

    asked = 0

    def do_GET(self):
        if "/resolve/" in self.path:
            Shrunk.asked += 1
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        with urllib.request.urlopen(there.endpoint + self.path) as answer:
            body = answer.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def a_source_without_the_bytes_is_not_asked_for_ever():
    upload(make_kernel(tool, work, "shrunk", {"torch-cpu": 300_000}), "acme/shrunk", there.endpoint, alice)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shrunk)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    copy = new_registry()
    said = mirror(copy.root, f"http://127.0.0.1:{server.server_address[1]}", "--repo", "acme/shrunk", expect=5)
    assert "416" in said and Shrunk.asked < 10, (said, Shrunk.asked)
    shutil.rmtree(copy.dir)
    server.shutdown()


OFFLINE = """
import fcntl, os, socket, struct, subprocess, sys, time
tool, root, work = sys.argv[1:]
with socket.socket() as any_socket:  # ip link set lo up: SIOCSIFFLAGS with IFF_UP
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", 1))
try:
    socket.create_connection(("192.0.2.1", 80), 1)
    raise SystemExit("there is a network")
except OSError:
    pass
told = os.path.join(work, "offline-endpoint")
server = subprocess.Popen([tool, "registry", "serve", "--root", root, "--listen", "127.0.0.1:0", "--endpoint-file", told], stdout=subprocess.DEVNULL)
while not os.path.exists(told):
    time.sleep(0.05)
os.environ.update(HF_ENDPOINT=open(told).read().strip(), HF_HOME=os.path.join(work, "offline-home"))
from kernels import get_kernel
from huggingface_hub import snapshot_download
try:
    kernel = get_kernel("acme/offline", version=1, backend="cpu")
    assert kernel.double(21) == 42 and kernel.size() == 5 << 20
    place = snapshot_download("acme/offline", repo_type="kernel", revision="v1", local_dir=os.path.join(work, "local"))
finally:
    server.terminate()
    server.wait()
# No server any more, an empty cache: only the folder.
script = "from kernels import get_kernel; k = get_kernel('acme/offline', version=1, backend='cpu'); assert k.size() == 5 << 20; print(k.__file__)"
env = dict(os.environ, HF_HOME=os.path.join(work, "empty"), HF_HUB_OFFLINE="1", LOCAL_KERNELS="acme/offline=" + place)
out = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True).stdout
assert out.startswith(place), out
print("loaded offline")
"""


def a_machine_without_a_network_loads_it():
    folder = make_kernel(tool, work, "offline", {"torch-cpu": 5 << 20}, init=INIT)
    upload(folder, "acme/offline", there.endpoint, alice)
    copy = new_registry()
    mirror(copy.root, there.endpoint, "--repo", "acme/offline")
    done = subprocess.run(["unshare", "-rn", sys.executable, "-c", OFFLINE, tool, copy.root, work], capture_output=True, text=True, timeout=120)
    assert "loaded offline" in done.stdout, done.stdout + done.stderr
    shutil.rmtree(copy.dir)


try:
    run_tests([a_version_is_taken_over_whole, a_killed_mirror_goes_on, a_private_source_wants_its_own_token,
               an_independent_server_is_a_source_too, a_source_without_the_bytes_is_not_asked_for_ever, a_machine_without_a_network_loads_it])
finally:
    if there.process and there.process.poll() is None:
        there.stop(signal.SIGKILL)
    shutil.rmtree(there.dir, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
