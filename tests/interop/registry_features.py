# SPDX-License-Identifier: Apache-2.0
"""registry_features.py KERNEL_BUILDER: parts, TLS, policy, renames, limits, pages and collection, by our uploader and stock clients."""
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import registry_server
from registry_server import Registry, SlowProxy, run_tests

tool = os.path.abspath(sys.argv[1])
registry = Registry(tool)
endpoint = registry.start()
work = tempfile.mkdtemp(prefix="kb-features-")
alice = registry.token("alice", "--namespace", "acme", "--namespace", "alice")
admin = registry.token("root", "--scope", "admin")
os.environ.update(HF_ENDPOINT=endpoint, HF_HOME=os.path.join(work, "home"), HF_TOKEN=alice, HF_HUB_DISABLE_XET="1",
                  HF_HUB_DISABLE_PROGRESS_BARS="1", NO_PROXY="127.0.0.1", KERNEL_BUILDER_STORE=os.path.join(work, "store"))

from huggingface_hub import HfApi, hf_hub_download  # noqa: E402
from huggingface_hub.errors import HfHubHTTPError  # noqa: E402

api = HfApi(endpoint=endpoint, token=alice)
PART = 32 << 20


def make_kernel(name, sizes, version=1):
    return registry_server.make_kernel(tool, work, name, sizes, version)


def upload(folder, repo, *options, expect=0, **variables):
    done = subprocess.run([tool, "upload", folder, "--repo-id", repo, "--json", "-q", *options], capture_output=True, text=True,
                          env=dict(os.environ, **variables), timeout=300)
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if expect == 0 else done.stderr


def requests_since(mark):
    """Access log lines from byte `mark` on."""
    with open(os.path.join(registry.dir, "log"), "rb") as log:
        log.seek(mark)
        return [json.loads(line) for line in log if line.startswith(b"{")]


def log_end():
    return os.path.getsize(os.path.join(registry.dir, "log"))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def large_objects_go_up_in_parts():
    folder = make_kernel("parts", {"torch-cpu": 5 * PART + 12345})
    mark = log_end()
    report = upload(folder, "acme/parts")
    puts = [r for r in requests_since(mark) if r["method"] == "PUT"]
    assert report["status"] == "uploaded" and len(puts) == 6 and all("/parts/" in r["path"] for r in puts), puts
    path = hf_hub_download("acme/parts", "build/torch-cpu/data.bin", repo_type="kernel", revision="v1")
    assert digest(path) == digest(os.path.join(folder, "build/torch-cpu/data.bin"))
    mark = log_end()
    assert upload(folder, "acme/parts")["status"] == "no_changes"
    assert all(r["method"] == "GET" for r in requests_since(mark))


def stock_clients_send_parts_too():
    content = os.urandom(2 * PART + 1000)
    api.create_repo("acme/stock", repo_type="kernel")
    mark = log_end()
    api.upload_file(path_or_fileobj=content, path_in_repo="big.bin", repo_id="acme/stock", repo_type="kernel")
    assert sum("/parts/" in r["path"] for r in requests_since(mark)) == 3
    assert digest(hf_hub_download("acme/stock", "big.bin", repo_type="kernel")) == hashlib.sha256(content).hexdigest()


def a_killed_upload_sends_only_the_parts_in_flight_again():
    size = 8 * PART
    folder = make_kernel("killed", {"torch-cpu": size})
    proxy = SlowProxy(endpoint, rate=24 << 20)
    mark = log_end()
    # The proxy knows addresses of the registry only by name: the uploader rewrites nothing, so it is a web proxy for it.
    env = dict(os.environ, http_proxy=f"http://127.0.0.1:{proxy.port}", NO_PROXY="", no_proxy="")
    process = subprocess.Popen([tool, "upload", folder, "--repo-id", "acme/killed", "-q"], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 120
    while sum("/parts/" in r["path"] and r["status"] == 200 for r in requests_since(mark)) < 4 and time.time() < deadline:
        assert process.poll() is None, "the upload ended before it was killed"
        time.sleep(0.02)
    time.sleep(0.2)  # as many as there are streams end together: the answers have to reach the uploader
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    confirmed = {r["path"] for r in requests_since(mark) if "/parts/" in r["path"] and r["status"] == 200}
    assert 4 <= len(confirmed) < 8, confirmed
    registry.stop(signal.SIGKILL)  # the server as well
    registry.start(listen=endpoint.removeprefix("http://"))
    mark = log_end()
    report = upload(folder, "acme/killed")
    sent = [r["path"] for r in requests_since(mark) if "/parts/" in r["path"]]
    in_flight = 4  # streams of the uploader
    assert len(sent) <= 8 - len(confirmed) + in_flight and len(sent) < 8, (len(sent), len(confirmed))
    assert report["transfer"]["parts-resumed"] >= len(confirmed) - in_flight
    path = hf_hub_download("acme/killed", "build/torch-cpu/data.bin", repo_type="kernel", revision="v1")
    assert digest(path) == digest(os.path.join(folder, "build/torch-cpu/data.bin"))
    assert os.listdir(os.path.join(registry.root, "parts")) == []


def unchanged_files_are_not_read_again():
    folder = make_kernel("cached", {"torch-cpu": 64 << 20})
    time.sleep(3.1)  # younger files are hashed again, as they could change without a trace
    upload(folder, "acme/cached")
    upload(folder, "acme/cached")
    big = os.path.join(folder, "build/torch-cpu/data.bin")
    done = subprocess.run(["strace", "-f", "-e", "trace=openat,pread64,read", "-o", os.path.join(work, "trace"), tool, "upload",
                           folder, "--repo-id", "acme/cached", "-q"], capture_output=True) if shutil.which("strace") else None
    if done:
        assert done.returncode == 0 and big not in open(os.path.join(work, "trace")).read()
    # Same size, same mtime: the ctime tells.
    stat = os.stat(big)
    with open(big, "r+b") as file:
        file.write(b"changed")
    os.utime(big, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert "digest" in upload(folder, "acme/cached", expect=1)


def published_versions_stay():
    folder = make_kernel("fixed", {"torch-cpu": 1000})
    upload(folder, "acme/fixed")
    with open(os.path.join(folder, "build/torch-cpu/data.bin"), "wb") as file:
        file.write(b"other")
    subprocess.run([tool, "hash", folder], check=True, capture_output=True)
    assert "published on 'refs/heads/v1'" in upload(folder, "acme/fixed", "--replace", expect=5)
    assert upload(folder, "acme/fixed", "--replace", HF_TOKEN=admin)["status"] == "uploaded"
    api.create_tag("acme/fixed", tag="v1.0", revision="v1", repo_type="kernel")
    for call in (lambda: api.delete_tag("acme/fixed", tag="v1.0", repo_type="kernel"),
                 lambda: api.delete_branch("acme/fixed", branch="v1", repo_type="kernel")):
        try:
            call()
            raise AssertionError("403 was expected")
        except HfHubHTTPError as error:
            assert error.response.status_code == 403


def two_jobs_publish_to_one_version():
    jobs = [make_kernel(f"job{i}", {v: 200_000}) for i, v in enumerate(("torch-cpu", "torch-cuda", "torch-rocm", "torch-xpu"))]
    upload(make_kernel("job-first", {"torch-metal": 1000}), "acme/jobs")
    started = [subprocess.Popen([tool, "upload", job, "--repo-id", "acme/jobs", "-q"], stderr=subprocess.PIPE, text=True) for job in jobs]
    for process in started:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    names = {p.split("/")[1] for p in api.list_repo_files("acme/jobs", repo_type="kernel", revision="v1") if p.startswith("build/")}
    assert names == {"torch-cpu", "torch-cuda", "torch-rocm", "torch-xpu", "torch-metal"}, names


def a_renamed_repository_is_found():
    api.create_repo("acme/old", repo_type="kernel")
    api.upload_file(path_or_fileobj=b"hello", path_in_repo="f.txt", repo_id="acme/old", repo_type="kernel")
    owner = HfApi(endpoint=endpoint, token=admin)
    owner.move_repo("acme/old", "acme/new", repo_type="kernel")
    assert open(hf_hub_download("acme/new", "f.txt", repo_type="kernel")).read() == "hello"
    assert open(hf_hub_download("acme/old", "f.txt", repo_type="kernel")).read() == "hello"
    assert api.repo_info("acme/old", repo_type="kernel").id == "acme/new"
    upload(make_kernel("renamed", {"torch-cpu": 100}), "acme/old")
    assert "build/torch-cpu/data.bin" in api.list_repo_files("acme/new", repo_type="kernel", revision="v1")


def pages_are_served():
    with urllib.request.urlopen(endpoint + "/search?q=PARTS") as answer:
        text = answer.read().decode()
        assert "/kernels/acme/parts" in text and "script" not in text
    with urllib.request.urlopen(endpoint + "/kernels/acme/parts") as answer:
        text = answer.read().decode()
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "get_kernel(&quot;acme/parts&quot;, version=1)" in text and "torch-cpu" in text
    link = re.search(r'href="(/kernels/acme/parts/resolve/[^"]*data\.bin)"', text).group(1)
    with urllib.request.urlopen(urllib.request.Request(endpoint + link, method="HEAD")) as answer:
        assert answer.headers["Content-Length"] == str(5 * PART + 12345)


def tokens_are_listed_and_revoked():
    token = registry.token("mallory", "--expires", "1")
    assert HfApi(endpoint=endpoint, token=token).whoami()["name"] == "mallory"
    listed = registry.run("registry", "token", "list", "--root", registry.root, "--json")
    assert token not in listed
    mine = [t for t in json.loads(listed)["tokens"] if t["user"] == "mallory"]
    assert len(mine) == 1 and mine[0]["expires"]
    registry.run("registry", "token", "revoke", "--root", registry.root, "--id", mine[0]["id"])
    try:
        HfApi(endpoint=endpoint, token=token).whoami()
        raise AssertionError("401 was expected")
    except HfHubHTTPError as error:
        assert error.response.status_code == 401


def the_access_log_holds_no_secret():
    text = open(os.path.join(registry.dir, "log")).read()
    assert "signature=" not in text and alice not in text and admin not in text
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert lines and all({"time", "peer", "method", "path", "status", "bytes", "seconds", "user-agent"} <= set(r) for r in lines)


def slow_headers_hold_nobody_up():
    host, port = endpoint.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(200)]  # workers: 64
    for connection in slow:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\nX-Slow: ")
    start = time.time()
    for _ in range(20):
        assert urllib.request.urlopen(endpoint + "/health", timeout=5).read() == b"OK"
    assert time.time() - start < 2, time.time() - start
    for connection in slow:
        connection.close()


def a_limit_is_waited_for():
    other = Registry(tool)
    settings = os.path.join(other.root, "registry.toml")
    text = open(settings).read().replace("anonymous-requests-per-minute = 0", "anonymous-requests-per-minute = 2")
    open(settings, "w").write(text)
    base = other.start()
    try:
        for _ in range(2):
            urllib.request.urlopen(base + "/api/kernels").read()
        try:
            urllib.request.urlopen(base + "/api/kernels")
            raise AssertionError("429 was expected")
        except urllib.error.HTTPError as error:
            assert error.code == 429 and 1 <= int(error.headers["Retry-After"]) <= 60
            assert re.fullmatch(r'"api";r=0;t=\d+', error.headers["RateLimit"])
    finally:
        other.stop()
        shutil.rmtree(other.dir)


def tls_protects_other_addresses():
    other = Registry(tool)
    refused = subprocess.run([tool, "registry", "serve", "--root", other.root, "--listen", "0.0.0.0:0"], capture_output=True, text=True,
                             timeout=30)
    assert refused.returncode == 5 and "tls-certificate" in refused.stderr, refused.stderr
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", os.path.join(other.root, "key.pem"), "-out",
                    os.path.join(other.root, "cert.pem")], check=True, capture_output=True)
    settings = os.path.join(other.root, "registry.toml")
    text = open(settings).read().replace("# tls-", "tls-")
    open(settings, "w").write(text)
    base = other.start()
    try:
        assert base.startswith("https://127.0.0.1:")
        certificate = os.path.join(other.root, "cert.pem")
        token = other.token("alice", "--namespace", "acme")
        folder = make_kernel("tls", {"torch-cpu": 3 * PART})
        upload(folder, "acme/tls", HF_ENDPOINT=base, HF_TOKEN=token, CURL_CA_BUNDLE=certificate)
        code = ("from huggingface_hub import hf_hub_download\n"
                "print(hf_hub_download('acme/tls', 'build/torch-cpu/data.bin', repo_type='kernel', revision='v1'))\n")
        got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                             env=dict(os.environ, HF_ENDPOINT=base, HF_TOKEN=token, SSL_CERT_FILE=certificate))
        assert got.returncode == 0, got.stderr[-2000:]
        assert digest(got.stdout.strip()) == digest(os.path.join(folder, "build/torch-cpu/data.bin"))
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        try:
            old.wrap_socket(socket.create_connection(("127.0.0.1", int(base.rsplit(":", 1)[1]))))
            raise AssertionError("TLS 1.1 must be refused")
        except (ssl.SSLError, OSError):
            pass
    finally:
        other.stop()
        shutil.rmtree(other.dir)


def what_nothing_leads_to_is_collected():
    api.delete_repo("acme/stock", repo_type="kernel", token=admin)
    refused = subprocess.run([tool, "registry", "gc", "--root", registry.root, "--grace", "0"], capture_output=True, text=True)
    assert refused.returncode == 5 and "served" in refused.stderr
    registry.run("registry", "gc", "--root", registry.root, "--grace", "1")
    registry.stop()
    time.sleep(1.1)
    looked = json.loads(registry.run("registry", "gc", "--root", registry.root, "--dry-run", "--grace", "0", "--json"))
    removed = json.loads(registry.run("registry", "gc", "--root", registry.root, "--grace", "0", "--json"))
    assert removed["bytes"] == looked["bytes"] >= 2 * PART + 1000 and removed["repositories"] == 1, removed
    assert registry.fsck()["problems"] == []
    registry.start(listen=endpoint.removeprefix("http://"))
    path = hf_hub_download("acme/parts", "build/torch-cpu/data.bin", repo_type="kernel", revision="v1", force_download=True)
    assert os.path.getsize(path) == 5 * PART + 12345


def an_archive_is_taken_over_elsewhere():
    archive = os.path.join(work, "kernels.tar")
    registry.run("registry", "export", "--root", registry.root, "--output", archive, "--repo", "kernels/acme/parts", "--repo",
                 "kernels/acme/jobs")
    other = Registry(tool)
    try:
        told = other.run("registry", "import", "--root", other.root, archive)
        assert told.startswith("imported 2 repositories"), told
        assert other.fsck()["problems"] == []
        base = other.start()
        there = HfApi(endpoint=base, token=False)
        for repo in ("acme/parts", "acme/jobs"):
            assert there.repo_info(repo, repo_type="kernel", revision="v1").sha == api.repo_info(repo, repo_type="kernel", revision="v1").sha
        path = there.hf_hub_download("acme/parts", "build/torch-cpu/data.bin", repo_type="kernel", revision="v1",
                                     local_dir=os.path.join(work, "elsewhere"))
        assert os.path.getsize(path) == 5 * PART + 12345
        other.stop()
    finally:
        shutil.rmtree(other.dir)


try:
    run_tests([large_objects_go_up_in_parts, stock_clients_send_parts_too, a_killed_upload_sends_only_the_parts_in_flight_again,
               unchanged_files_are_not_read_again, published_versions_stay, two_jobs_publish_to_one_version, a_renamed_repository_is_found,
               pages_are_served, tokens_are_listed_and_revoked, the_access_log_holds_no_secret, slow_headers_hold_nobody_up,
               a_limit_is_waited_for, tls_protects_other_addresses, an_archive_is_taken_over_elsewhere, what_nothing_leads_to_is_collected])
finally:
    registry.stop()
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(registry.dir, ignore_errors=True)
