# SPDX-License-Identifier: Apache-2.0
"""server_bench.py KERNEL_BUILDER GET_LOAD NGINX OUT.json [ROUNDS]: our registry and nginx, asked alternately for the same bytes.

KERNEL_BUILDER and GET_LOAD (kb_get_load) are release builds, NGINX a program file (Debian's package needs no installation: dpkg-deb -x).
Reads: one object of 300 MB over one connection, and 1000 files of 4 KB over 16 connections that are kept. Ours looks a revision and a
path up in its database and checks rights; nginx opens a file. Writes: an object of 300 MB, its digest computed and checked on the way,
beside `openssl dgst -sha256` and `cp` of the same file one after the other. Everything lies below KB_BENCH_DIR (default: a temporary
directory; /dev/shm keeps a slow disk out of it). Medians of ROUNDS (default 5)."""
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))
from registry_server import Registry, make_kernel  # noqa: E402

tool, load, nginx, out = (os.path.abspath(a) for a in sys.argv[1:5])
rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 5
tempfile.tempdir = os.environ.get("KB_BENCH_DIR")
work = tempfile.mkdtemp(prefix="kb-server-bench-")
registry = Registry(tool)
registry.log = open(os.devnull, "ab")
SMALL, LARGE, REQUESTS = 1000, 300_000_000, 20_000


def start_nginx(root):
    port = 18080 + os.getpid() % 1000
    conf = os.path.join(work, "nginx.conf")
    with open(conf, "w") as file:
        file.write(f"""worker_processes auto; pid {work}/nginx.pid; error_log {work}/error.log; daemon off; user root;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000;
  client_body_temp_path {work}/b; proxy_temp_path {work}/p; fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u; scgi_temp_path {work}/s;
  open_file_cache off; server {{ listen 127.0.0.1:{port}; root {root}; }} }}
""")
    process = subprocess.Popen([nginx, "-c", conf, "-p", work], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    return process, port


def measure(port, connections, requests, targets):
    text = subprocess.run([load, str(port), str(connections), str(requests), *targets], check=True, capture_output=True, text=True).stdout
    seconds, count, size = text.split()
    return {"requests_s": int(count) / float(seconds), "mb_s": int(size) / float(seconds) / 1e6}


def reads(ports, targets, connections, requests):
    runs = {name: [] for name in ports}
    for _ in range(rounds):
        for name, port in ports.items():
            runs[name].append(measure(port, connections, requests, targets[name]))
    result = {name: {key: round(statistics.median(run[key] for run in list_), 1) for key in list_[0]} for name, list_ in runs.items()}
    result["ratio"] = round(result["ours"]["requests_s"] / result["nginx"]["requests_s"], 3)
    return result


def put_once(token, repo, file, oid):
    request = urllib.request.Request(f"{registry.endpoint}/api/repos/create", json.dumps({"name": repo, "organization": "acme", "type": "kernel"}).encode(),
                                     {"Authorization": f"Bearer {token}"})
    urllib.request.urlopen(request).read()
    request = urllib.request.Request(f"{registry.endpoint}/kernels/acme/{repo}.git/info/lfs/objects/batch", json.dumps(
        {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": oid, "size": LARGE}]}).encode(), {"Authorization": f"Bearer {token}"})
    href = json.loads(urllib.request.urlopen(request).read())["objects"][0]["actions"]["upload"]["href"]
    start = time.time()
    subprocess.run(["curl", "-sf", "-H", "Expect:", "-T", file, "-o", os.devnull, href], check=True)
    return time.time() - start


def writes(token, file):
    with open(file, "rb") as content:
        oid = hashlib.sha256(content.read()).hexdigest()
    runs = {"put": [], "openssl_and_cp": []}
    for i in range(rounds):
        blob = os.path.join(registry.root, "blobs/sha256", oid[:2], oid[2:4], oid)
        for path in (blob, os.path.join(registry.root, "blobs/sha256", oid[:2], oid)):
            if os.path.exists(path):
                os.unlink(path)  # so that it is written, not found
        runs["put"].append(put_once(token, f"put{i}", file, oid))
        start = time.time()
        subprocess.run(["openssl", "dgst", "-sha256", file], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cp", file, os.path.join(work, "copy")], check=True)
        runs["openssl_and_cp"].append(time.time() - start)
        os.unlink(os.path.join(work, "copy"))
    result = {name: {"seconds": round(statistics.median(list_), 4), "mb_s": round(LARGE / statistics.median(list_) / 1e6)} for name, list_ in runs.items()}
    result["ratio"] = round(result["put"]["mb_s"] / result["openssl_and_cp"]["mb_s"], 3)
    return result


def serve_our_blob(place):
    """nginx sends the very file that the registry sends: how a file was written decides how its pages lie in the cache."""
    path = os.path.join(place, "data.bin")
    with open(path, "rb") as content:
        oid = hashlib.sha256(content.read()).hexdigest()
    os.rename(path, os.path.join(work, "source"))
    os.link(next(os.path.join(base, oid) for base, _, names in os.walk(os.path.join(registry.root, "blobs")) if oid in names), path)


def main():
    registry.start(options=())  # nginx writes no log either
    token = registry.token("alice", "--namespace", "acme")
    folder = make_kernel(tool, work, "bench", {"torch-cpu": LARGE})
    place = os.path.join(folder, "build/torch-cpu")
    for i in range(SMALL):
        with open(os.path.join(place, f"f{i}.py"), "wb") as file:
            file.write(os.urandom(4096))
    subprocess.run([tool, "hash", folder], check=True, capture_output=True)
    subprocess.run([tool, "upload", folder, "--repo-id", "acme/bench", "-q"], check=True, capture_output=True,
                   env=dict(os.environ, HF_ENDPOINT=registry.endpoint, HF_TOKEN=token, KERNEL_BUILDER_STORE=os.path.join(work, "store")))
    serve_our_blob(place)
    server, port = start_nginx(place)
    ours = urllib.parse.urlsplit(registry.endpoint).port
    sha = json.loads(urllib.request.urlopen(f"{registry.endpoint}/api/kernels/acme/bench/revision/v1").read())["sha"]
    base = f"/kernels/acme/bench/resolve/{sha}/build/torch-cpu/"
    ports = {"ours": ours, "nginx": port}
    try:
        result = {"machine": {"cpus": os.cpu_count(), "kernel": platform.release(), "load": round(os.getloadavg()[0], 1)},
                  "date": time.strftime("%Y-%m-%d", time.gmtime()), "rounds": rounds,
                  "nginx": subprocess.run([nginx, "-v"], capture_output=True, text=True).stderr.strip(),
                  "get_300mb": reads(ports, {"ours": [base + "data.bin"], "nginx": ["/data.bin"]}, 1, 4),
                  "get_4kb": reads(ports, {"ours": [f"{base}f{i}.py" for i in range(SMALL)], "nginx": [f"/f{i}.py" for i in range(SMALL)]}, 16, REQUESTS),
                  "put_300mb": writes(token, os.path.join(work, "source"))}
    finally:
        server.terminate()
        server.wait()
        registry.stop()
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(registry.dir, ignore_errors=True)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
    print(json.dumps(result, indent=2))


main()
