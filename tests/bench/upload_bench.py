# SPDX-License-Identifier: Apache-2.0
"""upload_bench.py KERNEL_BUILDER SINK PYTHON OUT.json [ROUNDS]: our uploader and huggingface_hub, run alternately against the same server.

KERNEL_BUILDER and SINK (kb_upload_sink) are release builds, PYTHON has huggingface_hub and kernels. What is new is sent to SINK,
which throws the bytes away, so that the clients are measured and not a disk ("new_..."), and to our own registry, which digests
and syncs everything on the same two cores ("registry_new_..."). The server's CPU time is not counted for either client. A new,
empty repository for every run, so that everything has to travel. The CPU and memory of a client are those of its process, from wait4;
Python's time is also given without the start of the interpreter and the imports, and that is what ours is divided by. Medians of
ROUNDS (default 5).
"""
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))
from registry_server import Registry  # noqa: E402

tool, sink_program, python, out = (os.path.abspath(a) for a in sys.argv[1:5])
rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 5
work = tempfile.mkdtemp(prefix="kb-bench-", dir=os.environ.get("KB_BENCH_DIR"))
registry = Registry(tool)
endpoint = registry.start()
token = registry.token("alice", "--namespace", "acme")
ENV = dict(os.environ, HF_ENDPOINT=endpoint, HF_TOKEN=token, HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_PROGRESS_BARS="1",
           HF_HOME=os.path.join(work, "home"), NO_PROXY="127.0.0.1", KERNEL_BUILDER_STORE=os.path.join(work, "store"))
SERVERS = {"registry": endpoint}


def start_sink():
    told = os.path.join(work, "sink")
    process = subprocess.Popen([sink_program, told], stdin=subprocess.DEVNULL)
    for _ in range(200):
        if os.path.exists(told):
            with open(told) as file:
                SERVERS["sink"] = file.read()
            return process
        time.sleep(0.05)
    raise SystemExit("the sink does not start")


UPLOAD = """
import sys, time
from huggingface_hub import HfApi
start = time.time()
api = HfApi()
api.create_branch(sys.argv[2], branch="v1", repo_type="kernel", exist_ok=True)
api.upload_folder(repo_id=sys.argv[2], repo_type="kernel", revision="v1", folder_path=sys.argv[1])
print("inner", time.time() - start)
"""
LOAD = """
import time
start = time.time()
from kernels import get_kernel
import sys
get_kernel(sys.argv[1], version=1, backend="cpu")
print("inner", time.time() - start)
"""


def make_kernel(name, files):
    folder = os.path.join(work, name)
    place = os.path.join(folder, "build", "torch-cpu")
    os.makedirs(place)
    for path, size in {"__init__.py": 0, **files}.items():
        with open(os.path.join(place, path), "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
            file.write(os.urandom(size & ((1 << 20) - 1)))
    with open(os.path.join(place, "metadata.json"), "w") as file:
        json.dump({"name": "relu", "id": "_relu_1", "version": 1, "license": "MIT", "python-depends": [], "backend": {"type": "cpu"},
                   "provenance": {"kernel-builder": {"version": "0.1.0"}, "build": {"sandbox": "namespaces"}}}, file)
    subprocess.run([tool, "hash", folder], check=True, capture_output=True)
    return folder


def measure(command):
    """Wall and CPU seconds and peak memory of a command, and what it says of its own time."""
    read, write = os.pipe()
    start = time.time()
    process = os.posix_spawn(command[0], command, ENV, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_CLOSE, read)])
    os.close(write)
    text = b""
    while piece := os.read(read, 65536):
        text += piece
    os.close(read)
    _, status, usage = os.wait4(process, 0)
    wall = time.time() - start
    if status != 0:
        raise SystemExit(f"{command}: status {status}: {text.decode(errors='replace')}")
    inner = [float(line.split()[1]) for line in text.decode().splitlines() if line.startswith("inner ")]
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "rss_mb": usage.ru_maxrss / 1024, "inner": inner[0] if inner else wall}


def ours(folder, repo):
    return measure([tool, "upload", folder, "--repo-id", repo, "-q"])


def theirs(folder, repo):
    return measure([python, "-c", UPLOAD, folder, repo])


def forget_hashes():
    shutil.rmtree(os.path.join(work, "upload"), ignore_errors=True)


number = 0


def new_repo(prefix):
    global number
    number += 1
    name = f"{prefix}{number}"
    body = json.dumps({"name": name, "organization": "acme", "type": "kernel"}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(ENV["HF_ENDPOINT"] + "/api/repos/create", body, headers)).read()
    return f"acme/{name}"


def median(runs):
    return {key: round(statistics.median(run[key] for run in runs), 4) for key in runs[0]}


def compare(folder, prefix, *, server="registry", again=False, known=False):
    """Alternating runs against a server; `again`: the second upload counts; `known`: our cache has the digests, as after a build."""
    runs = {"ours": [], "huggingface_hub": []}
    ENV["HF_ENDPOINT"] = SERVERS[server]
    for _ in range(rounds):
        for name, run in (("ours", ours), ("huggingface_hub", theirs)):
            repo = new_repo(prefix)
            if name == "ours" and not (again or known):
                forget_hashes()
            if again:
                run(folder, repo)
            runs[name].append(run(folder, repo))
    ENV["HF_ENDPOINT"] = SERVERS["registry"]
    result = {name: median(list_) for name, list_ in runs.items()}
    base = result["huggingface_hub"]
    result["ratio"] = {"wall": round(result["ours"]["wall"] / base["inner"], 4), "cpu": round(result["ours"]["cpu"] / base["cpu"], 4)}
    return result


def interrupted(folder):
    """A kill in the middle, then the same command: bytes that travel the second time, by the registry's log."""
    place = os.path.join(folder, "build/torch-cpu")
    total = sum(-(-os.path.getsize(os.path.join(place, name)) // (32 << 20)) for name in os.listdir(place) if name.endswith(".bin"))
    sent = {}
    for name, command in (("ours", lambda repo: [tool, "upload", folder, "--repo-id", repo, "-q"]),
                          ("huggingface_hub", lambda repo: [python, "-c", UPLOAD, folder, repo])):
        repo = new_repo("killed")
        forget_hashes()
        log = os.path.join(registry.dir, "log")
        mark = os.path.getsize(log)

        def parts():
            with open(log, "rb") as file:
                file.seek(mark)
                return sum(b"/parts/" in line and b'"status":200' in line for line in file)
        process = subprocess.Popen(command(repo), env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while parts() < 5 and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.5)
        before = parts()
        subprocess.run(command(repo), env=ENV, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sent[name] = {"parts": total, "confirmed_before_kill": before, "sent_after": parts() - before}
    return sent


def cold_load(folder):
    repo = new_repo("load")
    ours(folder, repo)
    runs = []
    for _ in range(rounds):
        shutil.rmtree(ENV["HF_HOME"], ignore_errors=True)
        runs.append(measure([python, "-c", LOAD, repo]))
    return median(runs)


def server_speed(folder):
    """curl against one object: read, and write with the digest checked, beside openssl and cp on the same file."""
    file = os.path.join(folder, "build/torch-cpu/a.bin")
    size = os.path.getsize(file)
    repo = new_repo("speed")
    ours(folder, repo)
    url = f"{endpoint}/kernels/{repo}/resolve/v1/build/torch-cpu/a.bin"

    def best(command, before=lambda: None):
        times = []
        for _ in range(rounds):
            before()
            start = time.time()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times.append(time.time() - start)
        return statistics.median(times)
    copy = os.path.join(work, "copy")
    get = best(["curl", "-sf", "-o", "/dev/null", url])
    digest = best(["openssl", "dgst", "-sha256", file])
    cp = best(["cp", file, copy], lambda: os.path.exists(copy) and os.unlink(copy))
    return {"mb": size >> 20, "get_mb_s": round(size / get / 1e6), "openssl_plus_cp_mb_s": round(size / (digest + cp) / 1e6)}


def main():
    big = make_kernel("big", {name: 300_000_000 for name in ("a.bin", "b.bin", "c.bin")})
    small = make_kernel("small", {f"f{i}.py": 4096 for i in range(200)})
    middle = make_kernel("middle", {"data.bin": 50_000_000})
    time.sleep(3.5)  # younger files would be hashed again each time
    sink = start_sink()
    try:
        result = {"machine": {"cpus": os.cpu_count(), "cpu": platform.processor() or platform.machine(), "kernel": platform.release(),
                              "load": os.getloadavg()[0]},
                  "versions": json.loads(subprocess.run([python, "-c", "import json, importlib.metadata as m\nprint(json.dumps({n: m.version(n)"
                                                         " for n in ('huggingface_hub', 'kernels')}))"], check=True, capture_output=True).stdout),
                  "rounds": rounds, "date": time.strftime("%Y-%m-%d", time.gmtime()),
                  "new_200x4k": compare(small, "small", server="sink"),
                  "new_900mb": compare(big, "new", server="sink"),
                  "new_900mb_digests_known": compare(big, "known", server="sink", known=True),
                  "registry_new_900mb": compare(big, "new"),
                  "registry_new_200x4k": compare(small, "small"),
                  "unchanged_900mb": compare(big, "same", again=True),
                  "killed_halfway": interrupted(big),
                  "get_kernel_cold_50mb": cold_load(middle),
                  "server": server_speed(big)}
    finally:
        sink.terminate()
        sink.wait()
        registry.stop()
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(registry.dir, ignore_errors=True)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
    print(json.dumps(result, indent=2))


main()
