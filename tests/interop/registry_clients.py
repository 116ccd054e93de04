# SPDX-License-Identifier: Apache-2.0
"""registry_clients.py KERNEL_BUILDER: stock huggingface_hub, kernels and git-lfs against our registry."""
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

from registry_server import Registry, run_tests

registry = Registry(os.path.abspath(sys.argv[1]))
endpoint = registry.start()
work = tempfile.mkdtemp(prefix="kb-clients-")
alice = registry.token("alice", "--namespace", "acme", "--namespace", "alice")
bob = registry.token("bob")
root = registry.token("root", "--scope", "admin")
# The clients read the environment when they are imported.
os.environ.update(HF_ENDPOINT=endpoint, HF_HOME=os.path.join(work, "home"), HF_TOKEN=alice, HF_HUB_DISABLE_XET="1",
                  HF_HUB_DISABLE_PROGRESS_BARS="1", NO_PROXY="127.0.0.1")

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, hf_hub_download, snapshot_download  # noqa: E402
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError  # noqa: E402

api = HfApi(endpoint=endpoint, token=alice)
REPO = "acme/relu"
BIG = os.urandom(12 << 20)  # over the size up to which files travel inside the commit
METADATA = {"id": "_relu_1", "name": "relu", "version": 1, "license": "Apache-2.0", "python-depends": [],
            "backend": {"type": "cpu"}}


def expect(error, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was expected")


def make_folder(name, files):
    folder = os.path.join(work, name)
    for path, content in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    return folder


def git_oid(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


KERNEL = {"README.md": "---\nlicense: apache-2.0\n---\nrelu\n",
          "build/torch-cpu/metadata.json": json.dumps(METADATA),
          "build/torch-cpu/__init__.py": "def double(x):\n    return 2 * x\n",
          "build/torch-cpu/empty.py": "",
          "build/torch-cpu/_relu.abi3.so": BIG}


def whoami():
    assert api.whoami()["name"] == "alice"
    assert expect(HfHubHTTPError, HfApi(endpoint=endpoint, token="hf_wrong").whoami).response.status_code == 401


def create_and_upload_a_kernel():
    url = api.create_repo(REPO, repo_type="kernel", exist_ok=True)
    assert str(url) == f"{endpoint}/kernels/{REPO}", url
    assert str(api.create_repo(REPO, repo_type="kernel", exist_ok=True)) == str(url)
    expect(HfHubHTTPError, api.create_repo, REPO, repo_type="kernel")
    api.create_branch(REPO, branch="v1", repo_type="kernel")
    api.create_branch(REPO, branch="v1", repo_type="kernel", exist_ok=True)
    folder = make_folder("kernel", KERNEL)
    info = api.upload_folder(repo_id=REPO, repo_type="kernel", folder_path=folder, revision="v1")
    again = api.upload_folder(repo_id=REPO, repo_type="kernel", folder_path=folder, revision="v1")
    refs = api.list_repo_refs(REPO, repo_type="kernel")
    heads = {ref.name: ref.target_commit for ref in refs.branches}
    assert set(heads) == {"main", "v1"}
    assert info.oid == again.oid == heads["v1"], (info, again, heads)
    assert len(api.list_repo_commits(REPO, repo_type="kernel", revision="v1")) == 2


def tree_has_true_ids():
    entries = {e.path: e for e in api.list_repo_tree(REPO, repo_type="kernel", revision="v1", recursive=True)}
    assert set(KERNEL) <= set(entries) and "build/torch-cpu" in entries
    for path, content in KERNEL.items():
        content = content if isinstance(content, bytes) else content.encode()
        assert entries[path].size == len(content)
        if entries[path].lfs:
            assert entries[path].lfs.sha256 == hashlib.sha256(content).hexdigest()
        else:
            assert entries[path].blob_id == git_oid(content), path
    assert entries["build/torch-cpu/_relu.abi3.so"].lfs
    infos = api.get_paths_info(REPO, ["README.md", "build", "nope"], repo_type="kernel", revision="v1")
    assert {i.path for i in infos} == {"README.md", "build"}


def download_is_what_was_uploaded():
    path = snapshot_download(REPO, repo_type="kernel", revision="v1", token=False)
    for name, content in KERNEL.items():
        with open(os.path.join(path, name), "rb") as file:
            assert file.read() == (content if isinstance(content, bytes) else content.encode()), name
    one = hf_hub_download(REPO, "README.md", repo_type="kernel", revision="refs/heads/v1", local_dir=os.path.join(work, "local"))
    assert open(one).read() == KERNEL["README.md"]


def missing_things_are_told_apart():
    assert api.repo_exists(REPO, repo_type="kernel") and not api.repo_exists("acme/nope", repo_type="kernel")
    assert api.file_exists(REPO, "README.md", repo_type="kernel", revision="v1")
    assert not api.file_exists(REPO, "nope", repo_type="kernel", revision="v1")
    assert not api.revision_exists(REPO, "v9", repo_type="kernel")
    expect(EntryNotFoundError, hf_hub_download, REPO, "nope", repo_type="kernel", revision="v1")
    expect(RevisionNotFoundError, hf_hub_download, REPO, "README.md", repo_type="kernel", revision="v9")
    expect(RepositoryNotFoundError, hf_hub_download, "acme/nope", "README.md", repo_type="kernel")


def private_repositories_are_hidden():
    api.create_repo("acme/secret", repo_type="kernel", private=True)
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id="acme/secret", repo_type="kernel")
    for token in (False, bob):
        outsider = HfApi(endpoint=endpoint, token=token)
        expect(RepositoryNotFoundError, outsider.repo_info, "acme/secret", repo_type="kernel")
        expect(RepositoryNotFoundError, outsider.hf_hub_download, "acme/secret", "x", repo_type="kernel")
    denied = expect(HfHubHTTPError, HfApi(endpoint=endpoint, token=bob).upload_file, path_or_fileobj=b"x",
                    path_in_repo="x", repo_id=REPO, repo_type="kernel")
    assert denied.response.status_code == 403


def commits_are_checked_and_whole():
    head = api.repo_info(REPO, repo_type="kernel").sha
    add = [CommitOperationAdd("a.txt", b"1"), CommitOperationAdd("dir/b.txt", b"2")]
    first = api.create_commit(REPO, add, commit_message="one", repo_type="kernel", parent_commit=head)
    stale = expect(HfHubHTTPError, api.create_commit, REPO, [CommitOperationAdd("c", b"3")], commit_message="two",
                   repo_type="kernel", parent_commit=head)
    assert stale.response.status_code == 412
    expect(EntryNotFoundError, api.create_commit, REPO, [CommitOperationDelete("nope")], commit_message="three", repo_type="kernel")
    api.create_commit(REPO, [CommitOperationDelete("dir/")], commit_message="four", repo_type="kernel")
    assert set(api.list_repo_files(REPO, repo_type="kernel")) == {"a.txt"}
    assert set(api.list_repo_files(REPO, repo_type="kernel", revision=first.oid)) == {"a.txt", "dir/b.txt"}
    pull = api.create_commit(REPO, [CommitOperationAdd("p", b"1")], commit_message="pull", repo_type="kernel", create_pr=True)
    assert pull.pr_num == 1 and pull.pr_revision == "refs/pr/1"
    assert set(api.list_repo_files(REPO, repo_type="kernel", revision="refs/pr/1")) == {"a.txt", "p"}
    assert [r.ref for r in api.list_repo_refs(REPO, repo_type="kernel", include_pull_requests=True).pull_requests] == ["refs/pr/1"]


def tags():
    api.create_tag(REPO, tag="r1", revision="v1", repo_type="kernel")
    expect(HfHubHTTPError, api.create_tag, REPO, tag="r1", repo_type="kernel")
    assert "README.md" in api.list_repo_files(REPO, repo_type="kernel", revision="r1")
    api.delete_tag(REPO, tag="r1", repo_type="kernel")
    api.create_branch(REPO, branch="feature/x", repo_type="kernel")
    api.delete_branch(REPO, branch="feature/x", repo_type="kernel")


def all_repository_types_are_alike():
    for kind, extra in (("model", {}), ("dataset", {}), ("space", {"space_sdk": "static"}), ("kernel", {})):
        api.create_repo("alice/thing", repo_type=kind, **extra)
        api.upload_file(path_or_fileobj=kind.encode(), path_in_repo="f.txt", repo_id="alice/thing", repo_type=kind)
        path = hf_hub_download("alice/thing", "f.txt", repo_type=kind)
        assert open(path).read() == kind
        api.delete_repo("alice/thing", repo_type=kind)
        assert not api.repo_exists("alice/thing", repo_type=kind)


def many_small_files_in_pages():
    folder = make_folder("many", {f"d{i % 7}/f{i}.txt": f"{i}" for i in range(1500)})
    api.create_repo("acme/many", repo_type="kernel")
    api.upload_folder(repo_id="acme/many", repo_type="kernel", folder_path=folder)
    assert len(api.list_repo_files("acme/many", repo_type="kernel")) == 1500
    with open(os.path.join(folder, "d0/f0.txt"), "w") as file:
        file.write("changed")
    api.upload_folder(repo_id="acme/many", repo_type="kernel", folder_path=folder, delete_patterns="d1/*")
    assert open(hf_hub_download("acme/many", "d0/f0.txt", repo_type="kernel")).read() == "changed"


def clients_with_xet_upload_small_files():
    code = ("from huggingface_hub import HfApi; import sys\n"
            "api = HfApi(); api.create_repo('acme/xet', repo_type='kernel')\n"
            "api.upload_folder(repo_id='acme/xet', repo_type='kernel', folder_path=sys.argv[1])\n"
            "print(sorted(api.list_repo_files('acme/xet', repo_type='kernel')))\n")
    folder = make_folder("small", {"README.md": "---\nlicense: mit\n---\n", "a/b.bin": os.urandom(100_000)})
    env = {k: v for k, v in os.environ.items() if k != "HF_HUB_DISABLE_XET"}
    done = subprocess.run([sys.executable, "-c", code, folder], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "a/b.bin" in done.stdout, done.stderr[-2000:]


def kernels_client_loads_a_kernel():
    from kernels import get_kernel, has_kernel
    kernel = get_kernel(REPO, version=1, backend="cpu")
    assert kernel.double(21) == 42
    assert has_kernel(REPO, version=1, backend="cpu")
    assert get_kernel(REPO, revision="v1", backend="cpu").double(4) == 8
    expect(ValueError, get_kernel, REPO, version=7, backend="cpu")


def kernels_command_line():
    def run(*arguments):
        return subprocess.run([os.path.join(os.path.dirname(sys.executable), "kernels"), *arguments],
                              capture_output=True, text=True, timeout=120, cwd=work)
    versions = run("versions", REPO)
    assert versions.returncode == 0 and "1" in versions.stdout, versions.stderr
    info = run("info", REPO, "--version", "1", "--json")
    assert info.returncode == 0 and json.loads(info.stdout)["name"] == "relu", info.stdout + info.stderr
    project = os.path.join(work, "project")
    os.makedirs(project)
    with open(os.path.join(project, "pyproject.toml"), "w") as file:
        file.write(f'[project]\nname = "p"\nversion = "1"\n[tool.kernels.dependencies]\n"{REPO}" = 1\n')
    lock = run("lock", project)
    assert lock.returncode == 0, lock.stderr
    locked = json.load(open(os.path.join(project, "kernels.lock")))
    assert api.repo_info(REPO, repo_type="kernel", revision="v1").sha in json.dumps(locked)


def git_lfs_pulls_and_pushes():
    if not shutil.which("git-lfs"):
        raise AssertionError("git-lfs is not installed")
    folder = os.path.join(work, "git")
    subprocess.run(["git", "init", "-q", folder], check=True)
    def git(*arguments):
        env = dict(os.environ, GIT_TERMINAL_PROMPT="0")
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    content = os.urandom(200_000)
    oid = hashlib.sha256(content).hexdigest()
    host = urllib.parse.urlsplit(endpoint).netloc
    git("remote", "add", "origin", f"{endpoint}/kernels/{REPO}.git")
    git("config", "lfs.url", f"http://user:{alice}@{host}/kernels/{REPO}.git/info/lfs")
    git("config", "lfs.locksverify", "false")
    objects = os.path.join(folder, ".git/lfs/objects", oid[:2], oid[2:4])
    os.makedirs(objects)
    with open(os.path.join(objects, oid), "wb") as file:
        file.write(content)
    git("lfs", "push", "--object-id", "origin", oid)
    shutil.rmtree(os.path.join(folder, ".git/lfs/objects"))
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
    smudged = subprocess.run(["git", "-C", folder, "lfs", "smudge"], input=pointer.encode(), capture_output=True, timeout=120)
    assert smudged.stdout == content, smudged.stderr


def raw_requests():
    host = urllib.parse.urlsplit(endpoint).netloc
    connection = http.client.HTTPConnection(host, timeout=20)

    def ask(method, path, body=None, headers=None):
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer, answer.read()
    head = api.repo_info(REPO, repo_type="kernel", revision="v1").sha
    big = f"/kernels/{REPO}/resolve/v1/build/torch-cpu/_relu.abi3.so"
    answer, body = ask("HEAD", big)
    assert answer.status == 200 and body == b"" and answer.getheader("Content-Length") == str(len(BIG))
    assert answer.getheader("X-Linked-Size") == str(len(BIG)) and answer.getheader("X-Repo-Commit") == head
    answer, body = ask("GET", big, headers={"Range": "bytes=1000000-1000009"})
    assert answer.status == 206 and body == BIG[1000000:1000010]
    answer, body = ask("GET", big, headers={"Range": f"bytes={len(BIG)}-"})
    assert answer.status == 416 and answer.getheader("Content-Range") == f"bytes */{len(BIG)}"
    for path, status, code in ((f"/kernels/{REPO}/resolve/v1/nope", 404, "EntryNotFound"),
                               (f"/kernels/{REPO}/resolve/v9/nope", 404, "RevisionNotFound"),
                               ("/kernels/acme/nope/resolve/main/x", 401, "RepoNotFound"),
                               (f"/kernels/{REPO}/resolve/v1/..%2f..%2fx", 404, "EntryNotFound"),
                               (f"/api/kernels/{REPO}/nope", 404, None)):
        for method in ("HEAD", "GET"):
            answer, body = ask(method, path)
            assert (answer.status, answer.getheader("X-Error-Code")) == (status, code), (method, path, answer.status)
    answer, _ = ask("DELETE", f"/api/kernels/{REPO}/refs")
    assert answer.status == 405 and answer.getheader("Allow") == "GET, HEAD"
    assert registry.fsck()["problems"] == []


try:
    run_tests([whoami, create_and_upload_a_kernel, tree_has_true_ids, download_is_what_was_uploaded,
               missing_things_are_told_apart, private_repositories_are_hidden, commits_are_checked_and_whole, tags,
               all_repository_types_are_alike, many_small_files_in_pages, clients_with_xet_upload_small_files,
               kernels_client_loads_a_kernel, kernels_command_line, git_lfs_pulls_and_pushes, raw_requests])
finally:
    registry.stop()
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(registry.dir, ignore_errors=True)
