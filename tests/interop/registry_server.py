# SPDX-License-Identifier: Apache-2.0
"""Starts and stops our registry for tests: loopback, a free port, a temporary root."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback


class Registry:
    def __init__(self, tool):
        self.tool = tool
        self.dir = tempfile.mkdtemp(prefix="kb-registry-")
        self.root = os.path.join(self.dir, "root")
        self.endpoint = None
        self.process = None
        self.log = open(os.path.join(self.dir, "log"), "ab")
        self.run("registry", "init", "--root", self.root)

    def run(self, *arguments):
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise AssertionError(f"{arguments}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def token(self, user, *options):
        return self.run("registry", "token", "create", "--root", self.root, "--user", user, *options).strip()

    def start(self, listen="127.0.0.1:0", options=("--access-log",)):
        told = os.path.join(self.dir, "endpoint")
        if os.path.exists(told):
            os.unlink(told)
        self.process = subprocess.Popen(
            [self.tool, "registry", "serve", "--root", self.root, "--listen", listen, "--endpoint-file", told, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log)
        for _ in range(600):
            if os.path.exists(told):
                self.endpoint = open(told).read().strip()
                return self.endpoint
            if self.process.poll() is not None:
                raise AssertionError("the server ended: " + open(os.path.join(self.dir, "log")).read()[-2000:])
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(timeout=30)

    def fsck(self):
        return json.loads(self.run("registry", "fsck", "--root", self.root, "--json"))


class SlowProxy:
    """Passes bytes on, at most `rate` a second to the server and `answer_rate` from it; so a kill falls into the middle."""

    def __init__(self, endpoint, rate=0, answer_rate=0):
        self.rates = rate, answer_rate
        self.target = ("127.0.0.1", int(endpoint.rsplit(":", 1)[1]))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                return
            for source, sink, rate in ((client, server, self.rates[0]), (server, client, self.rates[1])):
                threading.Thread(target=self.pump, args=(source, sink, rate), daemon=True).start()

    def pump(self, source, sink, rate):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
                if rate:
                    time.sleep(len(data) / rate)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def make_kernel(tool, work, name, sizes, version=1, init="x = 1\n"):
    """Finished variants with that many bytes of noise each."""
    folder = os.path.join(work, name)
    for variant, size in sizes.items():
        place = os.path.join(folder, "build", variant)
        os.makedirs(place)
        with open(os.path.join(place, "__init__.py"), "w") as file:
            file.write(init)
        with open(os.path.join(place, "data.bin"), "wb") as file:
            file.write(os.urandom(size))
        metadata = {"name": "noise", "id": "_noise_x", "version": version, "license": "MIT", "python-depends": [],
                    "backend": {"type": variant.removeprefix("torch-")},
                    "provenance": {"kernel-builder": {"version": "0.1.0"}, "build": {"sandbox": "namespaces"}}}
        with open(os.path.join(place, "metadata.json"), "w") as file:
            json.dump(metadata, file)
    subprocess.run([tool, "hash", folder], check=True, capture_output=True)
    return folder


def run_tests(tests):
    """Runs functions, prints a line each and the sum; exits 1 on a failure."""
    passed = failed = 0
    for test in tests:
        start = time.time()
        try:
            test()
            passed += 1
            print(f"ok   {test.__name__} ({time.time() - start:.2f} s)", flush=True)
        except Exception:  # a test may fail in any way; the next one runs all the same
            failed += 1
            print(f"FAIL {test.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
