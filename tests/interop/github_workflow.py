#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs .github/workflows/kernel.yml here: its own shell steps, job after job, with artifacts handed on as GitHub does.

  github_workflow.py KERNEL_BUILDER

The matrix of the plan fans out to one folder a variant; what the jobs upload comes together in the last one, which
publishes to a registry on loopback. The result must have the bytes of one `build` over the same variants. Not run here:
containers, apt, the job that builds the tool (the installed tree is its artifact), and GitHub itself.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import ruamel.yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "kernel.yml"
passed = failed = 0


def expect(what, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(f"{'ok     ' if ok else 'FAILED '} {what} {'' if ok else detail}")


class Run:
    """One run of the workflow: inputs, artifacts by name, outputs by job."""

    def __init__(self, work, inputs, secrets, kernel):
        self.work, self.kernel = work, kernel
        self.values = {"inputs": inputs, "secrets": secrets, "needs": {}, "matrix": {}, "steps": {}}
        self.artifacts = {}

    def fill(self, text):
        """The expressions that the workflow uses: a path of names, fromJSON(path), hashFiles(...)."""
        def value(match):
            expression = match.group(1).strip()
            if expression.startswith("hashFiles("):
                return "0"
            if expression.startswith("fromJSON("):
                expression = expression[9:-1]
            here = self.values
            for name in expression.split("."):
                here = here[name]
            return str(here)
        return re.sub(r"\$\{\{(.*?)\}\}", value, str(text))

    def use(self, step, place):
        action, given = step["uses"].split("@")[0], {k: self.fill(v) for k, v in step.get("with", {}).items()}
        if action == "actions/checkout":
            source = self.kernel if given["path"] == "kernel" else ROOT
            subprocess.run(["git", "clone", "-q", source, place / given["path"]], check=True)
        elif action == "actions/upload-artifact":
            kept = self.work / "artifacts" / given["name"]
            kept.mkdir(parents=True)  # a second one of that name is an error, as on GitHub
            shutil.copy(place / given["path"], kept)
            self.artifacts[given["name"]] = kept
        elif action == "actions/download-artifact" and "name" in given:
            shutil.copytree(self.artifacts[given["name"]], place, dirs_exist_ok=True)
        elif action == "actions/download-artifact":
            prefix = given["pattern"].rstrip("*")
            for name, kept in self.artifacts.items():
                if name.startswith(prefix):
                    shutil.copytree(kept, place / given["path"] / name)
        elif action == "actions/cache":
            store = os.environ.get("KERNEL_BUILDER_STORE")
            if store:
                os.symlink(store, place / given["path"])
        else:
            raise SystemExit(f"unknown action {action}")

    def shell(self, step, place, path):
        for name in ("output", "path"):
            (place / f".{name}").write_text("")
        environment = {**os.environ, "GITHUB_OUTPUT": str(place / ".output"), "GITHUB_PATH": str(place / ".path"),
                       "PATH": ":".join(path + [os.environ["PATH"]]), "HOME": str(place / "home")}
        environment.update({k: self.fill(v) for k, v in step.get("env", {}).items()})
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.fill(step["run"])],
                              cwd=place, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"FAILED  step in {place.name}:\n{step['run']}\n{done.stdout}{done.stderr}\n0 passed, 1 failed")
        path.extend((place / ".path").read_text().split())
        outputs = dict(line.split("=", 1) for line in (place / ".output").read_text().splitlines())
        self.values["steps"][step.get("id", "")] = {"outputs": outputs}

    def job(self, name, job, place):
        place.mkdir(parents=True)
        (place / "home").mkdir()
        path = []
        for step in job["steps"]:
            if "if" in step and self.fill("${{" + step["if"] + "}}") != "True":
                continue
            if "uses" in step:
                self.use(step, place)
            elif not step["run"].startswith("apt-get"):
                self.shell(step, place, path)
        outputs = {k: self.fill(v) for k, v in job.get("outputs", {}).items()}
        self.values["needs"][name] = {"outputs": outputs}

    def all(self, jobs):
        for name, job in jobs.items():
            if name == "tool":
                continue
            rows = [{}]
            if "strategy" in job:
                rows = json.loads(self.fill(job["strategy"]["matrix"]))["include"]
            for row in rows:
                self.values["matrix"] = row
                self.job(name, job, self.work / "jobs" / "-".join([name, *([row["variant"]] if row else [])]))


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True)


def make_kernel(work):
    kernel = work / "repository"
    shutil.copytree(ROOT / "tests" / "fixtures" / "norm-aot", kernel,
                    ignore=shutil.ignore_patterns("build", ".kernel-builder", "__pycache__"))
    build = kernel / "build.toml"
    build.write_text(build.read_text().replace("[torch]", '[general.hub]\nrepo-id = "example/norm-aot"\n\n[torch]', 1))
    (kernel / "CARD.md").write_text("# {{ repo_id }}\n")
    (kernel / ".gitignore").write_text("build/\n.kernel-builder/\n__pycache__/\n")
    git(kernel, "init", "-q")
    git(kernel, "add", "-A")
    git(kernel, "commit", "-q", "-m", "kernel")
    return kernel


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
            if p.is_file() and p.name != "CARD.md"}


def serve(tool, work):
    root = work / "registry"
    run = lambda *words: subprocess.run([tool, "registry", *words, "--root", root], check=True, capture_output=True, text=True).stdout
    run("init")
    token = run("token", "create", "--user", "example", "--scope", "write").split()[-1]
    server = subprocess.Popen([tool, "registry", "serve", "--root", root, "--listen", "127.0.0.1:0", "--endpoint-file",
                               work / "endpoint"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        if (work / "endpoint").exists() and (work / "endpoint").read_text():
            break
        subprocess.run(["sleep", "0.1"], check=True)
    return server, (work / "endpoint").read_text().strip(), token


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    jobs = ruamel.yaml.YAML(typ="safe").load(WORKFLOW.read_text())["jobs"]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        kernel = make_kernel(work)
        subprocess.run(["cmake", "--install", tool.parent.parent, "--prefix", work / "prefix"], check=True, stdout=subprocess.DEVNULL)
        (work / "artifacts" / "kernel-builder").mkdir(parents=True)
        subprocess.run(["tar", "-czf", work / "artifacts/kernel-builder/kernel-builder.tar.gz", "-C", work / "prefix", "."], check=True)
        server, endpoint, token = serve(tool, work)
        try:
            selection = "--backend cpu --torch 2.13,2.15"
            run = Run(work, {"builder": "x", "builder-ref": "y", "directory": ".", "selection": selection, "publish": True,
                             "endpoint": endpoint}, {"token": token}, kernel)
            run.artifacts["kernel-builder"] = work / "artifacts" / "kernel-builder"
            run.all(jobs)
            matrix = json.loads(run.values["needs"]["plan"]["outputs"]["matrix"])["include"]
            expect("the plan has two variants", len(matrix) == 2, matrix)
            expect("each job hands on its variant alone",
                   all(f"variant-{row['variant']}" in run.artifacts for row in matrix), run.artifacts)
            alone = work / "alone"
            git(kernel, "clone", "-q", ".", alone)
            build = subprocess.run([tool, "build", alone, "--matrix", *selection.split()], capture_output=True, text=True)
            expect("one build over the same variants", build.returncode == 0, build.stderr)
            together = work / "jobs" / "collect" / "kernel" / "build"
            expect("gives the same bytes", tree(together) == tree(alone / "build"), [*tree(together)])
            again = subprocess.run([tool, "upload", alone, "--json"], capture_output=True, text=True,
                                   env={**os.environ, "HF_ENDPOINT": endpoint, "HF_TOKEN": token})
            report = json.loads(again.stdout or "{}")
            expect("and nothing is left to publish", again.returncode == 0 and not report.get("commits"), again.stdout + again.stderr)
        finally:
            server.terminate()
            server.wait()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
