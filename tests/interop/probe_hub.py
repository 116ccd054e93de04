#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Independent test server: the smallest Hub-shaped HTTP server that the official clients accept.

Use it as a peer for upload and protocol tests (it shares no code with the registry), to record what a client
puts on the wire, and to provoke clients with deliberate defects. In-memory, single process, loopback only.

usage: probe_hub.py PORT TRACEFILE [opt=val ...]
  pagesize=N   tree page size (default 1000)
  lfsmin=N     preupload: >= N bytes => lfs, else regular        (default 1000)
  part=N       multipart part size, 0 = basic only               (default 0)
  xet=0|1      answer xet tokens / choose xet transfer            (default 0)
  lie=...      comma list of deliberate defects, see LIES
"""
import base64, hashlib, json, re, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(sys.argv[1]); TRACE = open(sys.argv[2], "a", buffering=1)
OPT = dict(a.split("=", 1) for a in sys.argv[3:])
PAGE = int(OPT.get("pagesize", 1000)); LFSMIN = int(OPT.get("lfsmin", 1000)); PART = int(OPT.get("part", 0))
XET = OPT.get("xet", "0") == "1"; LIES = set(OPT.get("lie", "").split(",")) - {""}
BASE = f"http://127.0.0.1:{PORT}"
TOKENS = {"hf_alice": "alice", "hf_bob": "bob"}
L = threading.RLock()
REPOS, BLOBS, LFS, PARTS, XORBS, XFILES = {}, {}, {}, {}, {}, {}
PL = {"models": "model", "datasets": "dataset", "spaces": "space", "kernels": "kernel"}

def gitsha(kind, data): return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()

def tree_objects(files):
    """real git tree oids for {path: (mode, oid)} -> {dirpath: oid}"""
    dirs = {"": {}}
    for p, oid in files.items():
        parts = p.split("/")
        for i in range(len(parts)):
            d = "/".join(parts[:i]); dirs.setdefault(d, {})
            if i: dirs.setdefault("/".join(parts[:i - 1]), {})[parts[i - 1]] = None
        dirs["/".join(parts[:-1])][parts[-1]] = oid
    out = {}
    def rec(d):
        ent = []
        for n, oid in dirs[d].items():
            if oid is None:
                ent.append((n + "/", b"40000 " + n.encode() + b"\0" + bytes.fromhex(rec((d + "/" + n).lstrip("/")))))
            else:
                ent.append((n, b"100644 " + n.encode() + b"\0" + bytes.fromhex(oid)))
        data = b"".join(e for _, e in sorted(ent)); out[d] = gitsha("tree", data); return out[d]
    rec(""); return out

class Repo:
    def __init__(s, typ, rid, owner, private):
        s.typ, s.rid, s.owner, s.private = typ, rid, owner, private
        s.commits = {}; s.branches = {}; s.tags = {}; s.pulls = {}
        ga = b"*.so filter=lfs diff=lfs merge=lfs -text\n"
        s.commit("main", {".gitattributes": s.reg(ga)}, [], "initial commit", "", owner)
    def reg(s, data):
        oid = gitsha("blob", data); BLOBS[oid] = data; return {"oid": oid, "size": len(data)}
    def lfs(s, sha, size):
        ptr = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha}\nsize {size}\n".encode()
        return {"oid": gitsha("blob", ptr), "size": size, "lfs": {"oid": sha, "size": size, "pointerSize": len(ptr)}}
    def commit(s, ref, files, parents, title, body, who):
        trees = tree_objects({p: f["oid"] for p, f in files.items()})
        now = int(time.time())
        raw = f"tree {trees['']}\n" + "".join(f"parent {p}\n" for p in parents) + \
              f"author {who} <{who}@x> {now} +0000\ncommitter {who} <{who}@x> {now} +0000\n\n{title}\n\n{body}\n{time.time_ns()}"
        oid = gitsha("commit", raw.encode())
        s.commits[oid] = dict(files=files, trees=trees, parents=parents, title=title, body=body, date=now, who=who)
        (s.pulls if ref.startswith("refs/pr/") else s.branches)[ref] = oid
        return oid
    def resolve(s, rev):
        rev = {"HEAD": "main"}.get(rev, rev)
        for pre, d in (("refs/heads/", s.branches), ("refs/tags/", s.tags)):
            if rev.startswith(pre) and rev[len(pre):] in d: return d[rev[len(pre):]]
        return s.branches.get(rev) or s.tags.get(rev) or s.pulls.get(rev) or (rev if rev in s.commits else None)

class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"; wbufsize = 1 << 16; disable_nagle_algorithm = True; rbufsize = 1 << 18
    def log_message(s, *a): pass
    # ------------------------------------------------------------------ plumbing
    def body(s):
        if s._body is None:
            if s.headers.get("Transfer-Encoding", "").lower() == "chunked":
                out = b""
                while True:
                    n = int(s.rfile.readline().split(b";")[0], 16); out += s.rfile.read(n); s.rfile.readline()
                    if n == 0: break
                s._body = out
            else: s._body = s.rfile.read(int(s.headers.get("Content-Length") or 0))
        return s._body
    def send(s, code, obj=None, headers=None, raw=None, head_len=None):
        data = raw if raw is not None else (b"" if obj is None else json.dumps(obj).encode())
        s.body()
        s.send_response(code)
        hd = {"Content-Type": "application/json; charset=utf-8" if raw is None else "application/octet-stream",
              "X-Request-Id": "Root=1-probe", **(headers or {})}
        for k, v in hd.items(): s.send_header(k, v)
        s.send_header("Content-Length", str(len(data) if head_len is None else head_len)); s.end_headers()
        if s.command != "HEAD": s.wfile.write(data)
        rb = s._body or b""
        TRACE.write(json.dumps({"t": round(time.time() % 1000, 3), "m": s.command, "u": s.path,
            "auth": s.headers.get("Authorization"), "ct": s.headers.get("Content-Type"), "t0": getattr(s, "_t0", None), "te": s.headers.get("Transfer-Encoding"),
            "acc": s.headers.get("Accept"), "ae": s.headers.get("Accept-Encoding"), "rng": s.headers.get("Range"), "ua": s.headers.get("User-Agent"),
            "in": rb[:1500].decode("utf8", "replace") if len(rb) < 200000 else f"<{len(rb)} bytes>", "inlen": len(rb),
            "st": code, "out": data[:700].decode("utf8", "replace") if raw is None else f"<{len(data)} bytes>", "oh": headers or {}}) + "\n")
        return True
    def err(s, st, code, msg, extra=None):
        h = {"X-Error-Message": msg}
        if code and "noerrcode" not in LIES: h["X-Error-Code"] = code
        return s.send(st, {"error": msg}, {**h, **(extra or {})})
    def user(s):
        a = s.headers.get("Authorization") or ""
        return TOKENS.get(a[7:]) if a.startswith("Bearer ") else (TOKENS.get(base64.b64decode(a[6:]).decode().split(":")[1]) if a.startswith("Basic ") else None)
    def go(s):
        s._body = None; s._t0 = round(time.time() % 1000, 3)
        try:
            if s.command == "POST" and "/_cas/v1/xorbs/" in s.path and s.headers.get("Content-Length"):
                n = int(s.headers["Content-Length"]); buf = bytearray(1 << 20); m = n
                while m: m -= s.rfile.readinto(memoryview(buf)[:min(m, 1 << 20)])
                s._body = b"x"; s._n = n
            elif s.command == "POST": s.body()
            with L: s.route()
        except BrokenPipeError: pass
        except Exception as e:
            import traceback; traceback.print_exc(); s.send(500, {"error": repr(e)})
    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = go
    # ------------------------------------------------------------------ routes
    def route(s):
        u = urllib.parse.urlsplit(s.path); q = dict(urllib.parse.parse_qsl(u.query, keep_blank_values=True)); p = u.path; m = s.command
        seg = [urllib.parse.unquote(x) for x in p.split("/")[1:]]
        if p == "/api/whoami-v2":
            w = s.user()
            if not w: return s.err(401, None, "Invalid credentials in Authorization header")
            return s.send(200, {"type": "user", "id": "1", "name": w, "fullname": w, "email": None, "orgs": [{"name": "acme", "type": "org", "fullname": "acme", "isEnterprise": False, "roleInOrg": "admin", "avatarUrl": ""}], "auth": {"type": "access_token", "accessToken": {"displayName": "t", "role": "write", "createdAt": "2026-01-01T00:00:00.000Z"}}, "avatarUrl": "", "isPro": False, "canPay": False, "periodEnd": None, "emailVerified": True})
        if p == "/api/validate-yaml": return s.send(200, {"errors": [], "warnings": []})
        if p == "/api/repos/create":
            if not s.user(): return s.err(401, None, "Invalid username or password.")
            j = json.loads(s.body()); typ = j.get("type") or "model"; rid = f"{j.get('organization') or s.user()}/{j['name']}"
            pre = "" if typ == "model" else typ + "s/"
            if (typ, rid) in REPOS: return s.send(409, {"error": "You already created this " + typ + " repo", "url": f"{BASE}/{pre}{rid}"})
            REPOS[typ, rid] = Repo(typ, rid, s.user(), j.get("private") or j.get("visibility") == "private")
            return s.send(200, {"url": f"{BASE}/{pre}{rid}", "name": rid, "id": "0" * 24, "private": False})
        if p == "/api/repos/delete":
            j = json.loads(s.body()); typ = j.get("type") or "model"; rid = f"{j.get('organization') or s.user()}/{j['name']}"
            if not REPOS.pop((typ, rid), None): return s.err(404, "RepoNotFound", "Repository not found")
            return s.send(200, raw=b"OK")
        if mm := re.fullmatch(r"/api/organizations/([^/]+)/overview", p):
            return s.send(200, {"name": mm[1], "fullname": mm[1], "avatarUrl": "", "numUsers": 1, "trustedKernelPublisher": mm[1] == "acme"})
        if seg[0] == "_lfs" and s.command == "PUT" and OPT.get("sink"): return s.sink(seg)
        if seg[0] == "_lfs" and OPT.get("sink") and seg[1] == "complete": LFS[seg[2]] = b""; return s.send(200, {})
        if seg[0] == "_lfs": return s.lfs_data(seg, q)
        if seg[0] == "_cas": return s.cas(seg[1:])
        if seg[0] == "api" and len(seg) >= 4 and seg[1] in PL:
            return s.repo_api(REPOS.get((PL[seg[1]], "/".join(seg[2:4]))), PL[seg[1]], seg[4:], q)
        typ = PL.get(seg[0], "model"); r = seg[1:] if seg[0] in PL else seg
        if len(r) >= 5 and r[1].endswith(".git") and r[2:5] == ["info", "lfs", "objects"]:
            return s.lfs_batch(REPOS.get((typ, f"{r[0]}/{r[1][:-4]}")), f"{r[0]}/{r[1][:-4]}", typ)
        if len(r) >= 5 and r[2] in ("resolve", "raw"):
            return s.resolve(REPOS.get((typ, "/".join(r[:2]))), r[3], "/".join(r[4:]), p)
        return s.err(404, None, "Sorry, we can't find the page you are looking for.")
    def vis(s, repo): return repo is not None and (not repo.private or s.user() == repo.owner)
    def norepo(s):
        return s.err(401 if not s.user() else 404, "RepoNotFound", "Repository not found" if s.user() else "Invalid username or password.")
    def entry(s, p, f):
        e = {"type": "file", "oid": f["oid"], "size": f["size"], "path": p}
        if "lfs" in f: e["lfs"] = f["lfs"]
        if f.get("lfs") and f["lfs"]["oid"] in XFILES: e["xetHash"] = XFILES[f["lfs"]["oid"]]
        return e
    def repo_api(s, repo, typ, a, q):
        if not s.vis(repo): return s.norepo()
        m, B = s.command, f"{BASE}/api/{typ}s/{repo.rid}"
        if not a or a[0] == "revision":
            c = repo.resolve(a[1] if a else "main")
            if not c: return s.err(404, "RevisionNotFound", f"Invalid rev id: {a[1]}")
            return s.send(200, {"_id": "0" * 24, "id": repo.rid, "modelId": repo.rid, "author": repo.rid.split("/")[0], "sha": c, "lastModified": "2026-01-01T00:00:00.000Z", "private": bool(repo.private), "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": [], "createdAt": "2026-01-01T00:00:00.000Z", "siblings": [{"rfilename": x} for x in sorted(repo.commits[c]["files"])], "usedStorage": 0})
        op, rev = a[0], a[1] if len(a) > 1 else None
        if op == "refs":
            f = lambda d, k: [{"name": n, "ref": f"refs/{k}/{n}", "targetCommit": c} for n, c in d.items()]
            o = {"branches": f(repo.branches, "heads"), "converts": [], "tags": f(repo.tags, "tags")}
            if q.get("include_prs"): o["pullRequests"] = [{"name": n, "ref": n, "targetCommit": c} for n, c in repo.pulls.items()]
            return s.send(200, o)
        if op == "branch" and m == "POST":
            if rev in repo.branches: return s.err(409, None, f"Reference already exists: refs/heads/{rev}")
            j = json.loads(s.body() or b"{}"); c = repo.resolve(j.get("startingPoint") or "main")
            if not c: return s.err(404, "RevisionNotFound", "Invalid rev id: " + str(j.get("startingPoint")))
            if j.get("emptyBranch"): c = repo.commit(rev, {}, [], "initial commit", "", repo.owner)
            repo.branches[rev] = c; return s.send(200, raw=b"OK")
        if op == "branch" and m == "DELETE":
            if not repo.branches.pop(rev, None): return s.err(404, "RevisionNotFound", "no branch")
            return s.send(200, raw=b"OK")
        if op == "tag" and m == "POST":
            j = json.loads(s.body())
            if j["tag"] in repo.tags: return s.err(409, None, "Tag reference exists already")
            repo.tags[j["tag"]] = repo.resolve(rev); return s.send(200, raw=b"OK")
        if op == "tag": repo.tags.pop(rev, None); return s.send(200, raw=b"OK")
        if op in ("xet-write-token", "xet-read-token"):
            if not XET: return s.err(404, None, "not a xet repo")
            return s.send(200, {"accessToken": "xet_t", "exp": int(time.time()) + 3600, "casUrl": BASE + "/_cas"})
        if op == "preupload":
            if not s.user(): return s.norepo()
            if not repo.resolve(rev): return s.err(404, "RevisionNotFound", f"Invalid rev id: {rev}")
            files = repo.commits[repo.resolve(rev)]["files"]; out = []
            for f in json.loads(s.body())["files"]:
                o = {"path": f["path"], "uploadMode": "lfs" if f["size"] >= LFSMIN else "regular", "shouldIgnore": False}
                old = files.get(f["path"])
                if old: o["oid"] = old["lfs"]["oid"] if "lfs" in old else old["oid"]
                out.append(o)
            return s.send(200, {"files": out, "commitOid": repo.resolve(rev)})
        if op == "commit": return s.commit(repo, rev, q)
        c = repo.resolve(rev)
        if not c: return s.err(404, "RevisionNotFound", f"Invalid rev id: {rev}")
        C = repo.commits[c]
        if op == "tree":
            d = "/".join(a[2:]); rec = q.get("recursive", "").lower() in ("true", "1")
            if d and d not in C["trees"]: return s.err(404, "EntryNotFound", f"{d} does not exist on \"{rev}\"", {"X-Repo-Commit": c})
            pre = d + "/" if d else ""; items = {}
            for pth, f in C["files"].items():
                if not pth.startswith(pre): continue
                rest = pth[len(pre):].split("/")
                for i in range(1, len(rest) if rec else min(2, len(rest))):
                    dd = pre + "/".join(rest[:i]); items[dd] = {"type": "directory", "oid": C["trees"][dd], "size": 0, "path": dd}
                if rec or len(rest) == 1: items[pth] = s.entry(pth, f)
            lst = [items[k] for k in sorted(items)]; off = int(q.get("cursor") or 0); lim = min(int(q.get("limit") or PAGE), PAGE)
            h = {"X-Repo-Commit": c}
            if off + lim < len(lst):
                nq = urllib.parse.urlencode({**q, "cursor": off + lim})
                h["Link"] = f'<{BASE}{urllib.parse.urlsplit(s.path).path}?{nq}>; rel="next"'
            return s.send(200, lst[off:off + lim], h)
        if op == "paths-info":
            ct = s.headers.get("Content-Type", "")
            ps = json.loads(s.body())["paths"] if "json" in ct else urllib.parse.parse_qs(s.body().decode()).get("paths", [])
            return s.send(200, [s.entry(x, C["files"][x]) if x in C["files"] else {"type": "directory", "oid": C["trees"][x], "size": 0, "path": x} for x in ps if x in C["files"] or x in C["trees"]])
        if op == "commits":
            out, x = [], c
            while x: k = repo.commits[x]; out.append({"id": x, "title": k["title"], "message": k["body"], "authors": [{"user": k["who"], "avatar": ""}], "date": "2026-01-01T00:00:00.000Z"}); x = (k["parents"] or [None])[0]
            return s.send(200, out, {"X-Total-Count": str(len(out))})
        return s.err(404, None, "unknown op " + op)
    def commit(s, repo, rev, q):
        if not s.user(): return s.norepo()
        head = repo.resolve(rev)
        if not head or (rev not in repo.branches and rev not in repo.pulls and not q.get("create_pr")): return s.err(404, "RevisionNotFound", f"Invalid rev id: {rev}")
        hdr, files = {}, dict(repo.commits[head]["files"])
        for line in s.body().split(b"\n"):
            if not line.strip(): continue
            o = json.loads(line); k, v = o["key"], o["value"]
            if k == "header": hdr = v
            elif k == "file":
                files[v["path"]] = repo.reg(base64.b64decode(v["content"]) if v.get("encoding") == "base64" else v["content"].encode())
            elif k == "lfsFile":
                if v["oid"] not in LFS and v["oid"] not in XFILES: return s.err(400, None, f"lfs object {v['oid']} missing")
                files[v["path"]] = repo.lfs(v["oid"], v.get("size") or len(LFS[v["oid"]]))
            elif k == "deletedFile":
                if v["path"] not in files: return s.err(404, "EntryNotFound", "A file with this name doesn't exist: " + v["path"])
                del files[v["path"]]
            elif k == "deletedFolder":
                pre = v["path"].rstrip("/") + "/"; files = {p: f for p, f in files.items() if not p.startswith(pre)}
        if hdr.get("parentCommit") and not head.startswith(hdr["parentCommit"]): return s.err(412, None, "A commit has happened since. Please refresh and try again.")
        ref, pr = rev, None
        if q.get("create_pr"): ref = f"refs/pr/{len(repo.pulls) + 1}"; pr = len(repo.pulls) + 1
        oid = repo.commit(ref, files, [head], hdr["summary"], hdr.get("description") or "", s.user())
        pre = "" if repo.typ == "model" else repo.typ + "s/"
        o = {"success": True, "commitOid": oid, "commitUrl": f"{BASE}/{pre}{repo.rid}/commit/{oid}", "hookOutput": ""}
        if pr: o["pullRequestUrl"] = f"{BASE}/{pre}{repo.rid}/discussions/{pr}"
        return s.send(200, o)
    # ------------------------------------------------------------------ LFS
    def lfs_batch(s, repo, rid, typ):
        if not s.vis(repo): return s.norepo()
        if s.command == "POST" and s.path.endswith("/verify"):
            j = json.loads(s.body()); ok = OPT.get("sink") or len(LFS.get(j["oid"], b"\0" * 9999999)) == j["size"]
            return s.send(200 if ok else 404, {}, {"Content-Type": "application/vnd.git-lfs+json"})
        j = json.loads(s.body()); pre = "" if typ == "model" else typ + "s/"; objs = []
        tr = "xet" if XET and "xet" in j.get("transfers", []) else ("multipart" if PART and "multipart" in j.get("transfers", []) else "basic")
        for o in j["objects"]:
            e = {"oid": o["oid"], "size": o["size"], "authenticated": True}
            if j["operation"] == "download":
                e["actions"] = {"download": {"href": f"{BASE}/_lfs/{o['oid']}", "header": {}}} if o["oid"] in LFS else None
                if not e["actions"]: del e["actions"]; e["error"] = {"code": 404, "message": "Object does not exist"}
            elif o["oid"] not in LFS and o["oid"] not in XFILES:
                ver = {"href": f"{BASE}/{pre}{rid}.git/info/lfs/objects/verify", "header": {"Authorization": s.headers.get("Authorization") or ""}}
                if tr == "xet": up = {"href": f"{BASE}/api/{typ}s/{rid}/xet-write-token/main", "header": {"X-Xet-Cas-Url": BASE + "/_cas", "X-Xet-Access-Token": "xet_t", "X-Xet-Token-Expiration": str(int(time.time()) + 3600), "X-Xet-Session-Id": "s1"}}
                elif tr == "multipart" and o["size"] > PART:
                    n = -(-o["size"] // PART)
                    up = {"href": f"{BASE}/_lfs/complete/{o['oid']}", "header": {"chunk_size": str(PART), **{f"{i:05d}": f"{BASE}/_lfs/part/{o['oid']}/{i}" for i in range(1, n + 1)}}}
                else: up = {"href": f"{BASE}/_lfs/{o['oid']}?sig=abc", "header": {}}
                e["actions"] = {"upload": up, "verify": ver}
            objs.append(e)
        return s.send(200, {"transfer": tr, "objects": objs}, {"Content-Type": "application/vnd.git-lfs+json"})
    def sink(s, seg):
        n = int(s.headers["Content-Length"]); buf = bytearray(1 << 20); L.release()
        try:
            while n: n -= s.rfile.readinto(memoryview(buf)[:min(n, 1 << 20)])
        finally: L.acquire()
        s._body = b""
        if seg[1] != "part": LFS[seg[1]] = b""
        return s.send(200, {}, {"ETag": '"x"'})
    def lfs_data(s, seg, q):
        if s.command == "GET": return s.ranged(LFS[seg[1]], {"ETag": f'"{seg[1]}"', "Accept-Ranges": "bytes"})
        if seg[1] == "part":
            PARTS[seg[2], int(seg[3])] = s.body(); return s.send(200, raw=b"", headers={"ETag": '"%s"' % hashlib.md5(s.body()).hexdigest()})
        if seg[1] == "complete":
            j = json.loads(s.body()); d = b"".join(PARTS[seg[2], x["partNumber"]] for x in sorted(j["parts"], key=lambda x: x["partNumber"])); oid = seg[2]
        else: d, oid = s.body(), seg[1]
        if hashlib.sha256(d).hexdigest() != oid: return s.send(422, {"message": "sha256 mismatch"})
        LFS[oid] = d; return s.send(200, {})
    # ------------------------------------------------------------------ CAS: accept, record
    def cas(s, a):
        if s.command == "POST" and a[:3] == ["v1", "xorbs", "default"]:
            new = a[3] not in XORBS; XORBS[a[3]] = len(s.body()); return s.send(200, {"was_inserted": new})
        if s.command == "POST" and a == ["v1", "shards"]:
            b = s.body(); None
            for sha, xh in parse_shard(b): XFILES[sha] = xh
            return s.send(200, {"result": 1})
        return s.err(404, None, "nope")
    # ------------------------------------------------------------------ resolve
    def ranged(s, data, h):
        r = s.headers.get("Range")
        if r and (m := re.fullmatch(r"bytes=(\d*)-(\d*)", r)):
            n = len(data); a = int(m[1]) if m[1] else max(0, n - int(m[2])); b = min(int(m[2]), n - 1) if m[1] and m[2] else n - 1
            if a >= n: return s.send(416, raw=b"", headers={**h, "Content-Range": f"bytes */{n}"})
            return s.send(206, raw=data[a:b + 1], headers={**h, "Content-Range": f"bytes {a}-{b}/{n}"})
        return s.send(200, raw=data, headers=h)
    def resolve(s, repo, rev, path, urlpath):
        if not s.vis(repo): return s.norepo()
        c = repo.resolve(rev)
        if not c: return s.err(404, "RevisionNotFound", f"Invalid rev id: {rev}")
        f = repo.commits[c]["files"].get(path)
        if not f: return s.err(404, "EntryNotFound", "Entry not found", {} if "nocommit404" in LIES else {"X-Repo-Commit": c})
        h = {"Accept-Ranges": "bytes", "X-Repo-Commit": c, "ETag": f'"{f["oid"]}"'}
        if "nocommit" in LIES: del h["X-Repo-Commit"]
        if "noetag" in LIES: del h["ETag"]
        if "lfs" in f:
            h.update({"X-Linked-Etag": f'"{f["lfs"]["oid"]}"', "X-Linked-Size": str(f["size"])})
            if "redirect" in OPT: return s.send(302, raw=b"", headers={**h, "Location": f"{OPT['redirect']}/_lfs/{f['lfs']['oid']}"})
            return s.ranged(LFS[f["lfs"]["oid"]], h)
        return s.ranged(BLOBS[f["oid"]], h)

def hexle(b): return "".join(b[i:i + 8][::-1].hex() for i in range(0, 32, 8))
def parse_shard(b):
    o = 48
    while b[o:o + 32] != b"\xff" * 32:
        fh = hexle(b[o:o + 32]); fl = int.from_bytes(b[o + 32:o + 36], "little"); n = int.from_bytes(b[o + 36:o + 40], "little"); o += 48 + 48 * n
        if fl & 0x80000000: o += 48 * n
        if fl & 0x40000000: yield hexle(b[o:o + 32]), fh; o += 48

if __name__ == "__main__":
    ThreadingHTTPServer.daemon_threads = True
    print("probe on", BASE, flush=True); ThreadingHTTPServer(("127.0.0.1", PORT), H).serve_forever()
