# SPDX-License-Identifier: Apache-2.0
"""A web proxy on loopback that harms some of the requests it passes on. FaultProxy(plan): `plan(request)` names the fault of a request,
or None; a request has method, path (without the query), number (from 1) and time (how often this method and path came before).

fault            what the client sees
drop             the connection is closed, the server never sees the request
lose             the server handles it, the answer is lost
cut              half of the body is passed on, then both connections are reset
truncate         half of the answer comes, then the connection is closed
stall SECONDS    half of the body, then nothing for so long, then the rest
status N [SECS]  an answer of that status, with Retry-After: SECS; the server never sees the request
slow BYTES       the body is passed on at so many bytes a second
"""
import collections
import socket
import struct
import threading
import time
import urllib.parse

Request = collections.namedtuple("Request", "method path number time")
BLOCK = 1 << 16


class Closed(Exception):
    """One of the two ends is gone."""


def read_head(stream):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(1 << 16)
        if not line:
            raise Closed
        head += line
    return head


def field(head, name):
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip().decode()
    return None


class FaultProxy:
    def __init__(self, plan):
        self.plan = plan
        self.faults = []
        self.lock = threading.Lock()
        self.times = collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = {}
        try:
            stream = client.makefile("rb")
            while True:
                self.pass_on(client, stream, server)
        except (Closed, OSError):
            pass
        finally:
            for connection in [client, *server.values()]:
                connection.close()

    def judge(self, method, path):
        with self.lock:
            request = Request(method, path, sum(self.times.values()) + 1, self.times[(method, path)])
            self.times[(method, path)] += 1
            fault = self.plan(request)
            if fault:
                self.faults.append((fault, method, path))
        return (fault or "").split()

    def pass_on(self, client, stream, server):
        head = read_head(stream)
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        url = urllib.parse.urlsplit(target)
        length = int(field(head, b"content-length") or 0)
        fault = self.judge(method, url.path)
        kind = fault[0] if fault else ""
        if kind == "drop":
            raise Closed
        if kind == "status":
            self.refuse(client, fault)
            raise Closed
        if url.netloc not in server:
            host, port = url.netloc.split(":")
            server[url.netloc] = socket.create_connection((host, int(port)))
        upstream = server[url.netloc]
        upstream.sendall(head)
        self.pass_body(stream, upstream, length, fault, client)
        self.pass_answer(upstream, client, method, kind)

    @staticmethod
    def refuse(client, fault):
        wait = f"Retry-After: {fault[2]}\r\n" if len(fault) > 2 else ""
        client.sendall(f"HTTP/1.1 {fault[1]} Fault\r\n{wait}Content-Length: 5\r\nConnection: close\r\n\r\nfault".encode())
        # The rest of the request is read, or the answer would be lost with the reset.
        client.shutdown(socket.SHUT_WR)
        client.settimeout(10)
        while client.recv(BLOCK):
            pass

    @staticmethod
    def pass_body(stream, upstream, length, fault, client):
        kind = fault[0] if fault else ""
        done = 0
        while done < length:
            size = min(BLOCK, length - done)
            if done < length // 2 <= done + size and length // 2 > done:
                size = max(1, length // 2 - done)
            data = stream.read(size)
            if not data:
                raise Closed
            upstream.sendall(data)
            done += len(data)
            if done == length // 2 and kind == "cut":
                for connection in (client, upstream):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raise Closed
            if done == length // 2 and kind == "stall":
                time.sleep(float(fault[1]))
            if kind == "slow":
                time.sleep(len(data) / float(fault[1]))

    @staticmethod
    def pass_answer(upstream, client, method, kind):
        answer = upstream.makefile("rb")
        head = read_head(answer)
        length = field(head, b"content-length")
        status = int(head.split(b" ", 2)[1])
        if length is None and status not in (204, 304):
            raise Closed  # this proxy knows no chunks; our server sends none below 1 MiB
        left = 0 if method == "HEAD" or status in (204, 304) else int(length)
        if kind == "lose":
            answer.read(left)
            raise Closed
        if kind == "truncate":
            client.sendall(head + answer.read(left // 2))
            raise Closed
        client.sendall(head)
        while left:
            data = answer.read(min(BLOCK, left))
            if not data:
                raise Closed
            client.sendall(data)
            left -= len(data)
