# SPDX-License-Identifier: Apache-2.0
"""compile_commands.py NINJA CMAKE PROJECT TORCH CUDA: what two compile databases tell the compilers, file by file.

NINJA is of the hermetic build (ninja -t compdb), CMAKE of the CMake project in PROJECT. Prints each difference in
definitions, C++ standard, include directories, architectures and flags; exits 1 when there is one.
"""
import json
import pathlib
import re
import shlex
import sys

# Where a compiler puts its output and what names files: no part of what is compiled.
ONE_WORD = re.compile(r"-c|--keep|-ccbin=.*|-frandom-seed=.*|-forward-unknown-to-host-compiler")
TWO_WORDS = {"-o", "--keep-dir", "-x", "-MF", "-MT"}


class Side:
    def __init__(self, project, torch, cuda):
        self.project, self.torch, self.cuda = project, torch, cuda

    def place(self, directory):
        """An include directory in words that both sides share; None for what nvcc finds by itself."""
        directory = str(pathlib.PurePosixPath(directory))
        if re.match(self.torch, directory):
            return "torch"
        if re.match(self.cuda, directory):
            return None
        if directory == self.project or directory.startswith(self.project + "/"):
            return "project" + directory[len(self.project):]
        if directory == "/toolchain/python" or pathlib.Path(directory, "Python.h").exists():
            return "python"
        return directory

    def facts(self, words):
        out = {"standard": set(), "definitions": set(), "include": set(), "flags": set()}
        words = iter(words)
        for word in words:
            if word in ("-isystem", "-I", "-D"):
                word += next(words)
            if word in TWO_WORDS:
                next(words)
            elif word.startswith("-D"):
                out["definitions"].add(word[2:])
            elif word.startswith("-std="):
                out["standard"].add(word)
            elif word.startswith(("-I", "-isystem")):
                place = self.place(re.sub("^(-I|-isystem=?)", "", word))
                out["include"] |= {place} - {None}
            elif word.startswith("-Xcompiler="):
                out["flags"] |= {f"-Xcompiler={flag}" for flag in word[11:].split(",") if not ONE_WORD.fullmatch(flag)}
            elif word.startswith("-") and not ONE_WORD.fullmatch(word):
                out["flags"].add(word)
        return out

    def read(self, path, extensions=(".cpp", ".cu")):
        out = {}
        for row in json.loads(pathlib.Path(path).read_text()):
            words = shlex.split(row["command"].replace("&&", " && "))
            source = next((w for w in words if w.endswith(extensions) and w.startswith(self.project + "/")), None)
            if source:
                start = next(i for i, w in enumerate(words) if w.endswith(("g++", "c++", "nvcc")))
                end = words.index("&&", start) if "&&" in words[start:] else len(words)
                out[source[len(self.project) + 1:]] = self.facts(words[start + 1:end])
        return out


def main():
    ninja, cmake, project, torch, cuda = sys.argv[1:]
    ours = Side("/src", r"/toolchain/torch-", r"/toolchain/cuda-").read(ninja)
    theirs = Side(project, re.escape(torch), re.escape(cuda or "none")).read(cmake)
    differences = 0
    for source in sorted(ours.keys() | theirs.keys()):
        if source not in ours or source not in theirs:
            print(f"{source}: only in {'build.ninja' if source in ours else 'the CMake project'}")
            differences += 1
            continue
        for key, value in ours[source].items():
            if value != theirs[source][key]:
                print(f"{source}: {key}: only in build.ninja {sorted(value - theirs[source][key])}, "
                      f"only in the CMake project {sorted(theirs[source][key] - value)}")
                differences += 1
    print(f"{len(ours)} sources, {differences} differences")
    return 1 if differences or not ours else 0


if __name__ == "__main__":
    sys.exit(main())
