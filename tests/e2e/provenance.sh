#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Statement, bill of materials and signature of a variant: made by build and sign, judged by verify, the same in every build.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
"$kb" init k --name me/tiny --backends cpu >/dev/null; rm -rf k/.git
cp -r k other
variant=torch-stable-abi211-cpu-x86_64-linux said=.kernel-builder/provenance
check "a kernel builds" build k
check "its statement and bill of materials lie beside build/" test -s "k/$said/$variant.slsa.json" -a -s "k/$said/$variant.cdx.json"
check_not "and not in the variant" sh -c "ls k/build/$variant | grep -E 'slsa|cdx|dsse'"
check "they are JSON of the right kind, with every file and input" python3 - "k/$said/$variant" "k/build/$variant" <<'PY'
import hashlib, json, pathlib, sys
at, tree = sys.argv[1], pathlib.Path(sys.argv[2])
said, bill = json.load(open(at + ".slsa.json")), json.load(open(at + ".cdx.json"))
assert said["_type"] == "https://in-toto.io/Statement/v1" and said["predicateType"] == "https://slsa.dev/provenance/v1"
files = {f"{tree.name}/{p.relative_to(tree)}": hashlib.sha256(p.read_bytes()).hexdigest() for p in tree.rglob("*") if p.is_file() and p.suffix != ".pyc"}
assert {s["name"]: s["digest"]["sha256"] for s in said["subject"]} == files
definition, details = said["predicate"]["buildDefinition"], said["predicate"]["runDetails"]
names = [d["name"] for d in definition["resolvedDependencies"]]
assert any(n.startswith("deb/libc6@") or n.startswith("deb/g++-12@") for n in names), names
assert any(n.startswith("wheel/torch@2.11.0") for n in names) and "source/tiny_cpu/relu.cpp" in names, names
assert all(len(h) == 64 for d in definition["resolvedDependencies"] for a, h in d["digest"].items() if a == "sha256")
assert definition["internalParameters"]["sandbox"] == "namespaces" and details["builder"]["id"]
assert details["byproducts"][0]["digest"]["sha256"] == hashlib.sha256(open(at + ".cdx.json", "rb").read()).hexdigest()
assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.5"
refs = [c["bom-ref"] for c in bill["components"]] + [bill["metadata"]["component"]["bom-ref"]]
assert len(refs) == len(set(refs)) and set(bill["dependencies"][0]["dependsOn"]) <= set(refs)
assert all(c["purl"].startswith("pkg:") for c in bill["components"])
PY
check "another place builds" build other --no-cache
same_tree "with the same statement and bill, byte by byte" "k/$said" "other/$said"
check_exit 0 "passed" "verify finds the statement true" "$kb" verify k
check "a key is made" "$kb" sign --key release.key --new-key
equal "which only its owner reads" "$(stat -c %a release.key)" 600
check_exit 1 "File exists|already" "and is not overwritten" "$kb" sign --key release.key --new-key
check_exit 1 "not signed" "verify --key fails what nobody signed" "$kb" verify k --key release.key.pub
check "sign signs" "$kb" sign k --key release.key
check "verify --key passes" "$kb" verify k --key release.key.pub
check "OpenSSL agrees" sh -c "python3 - k/$said/$variant.dsse.json <<'PY'
import base64, json, sys
e = json.load(open(sys.argv[1])); t, b = e['payloadType'].encode(), base64.b64decode(e['payload'])
open('message', 'wb').write(b'DSSEv1 %d %s %d %s' % (len(t), t, len(b), b)); open('sig', 'wb').write(base64.b64decode(e['signatures'][0]['sig']))
PY
openssl pkeyutl -verify -pubin -inkey release.key.pub -rawin -in message -sigfile sig"
"$kb" sign --key other.key --new-key >/dev/null
check_exit 1 "no signature by this key" "another key does not" "$kb" verify k --key other.key.pub
check_exit 2 "no public key" "what is no key is named" "$kb" verify k --key release.key
check "a copy of the statements elsewhere serves too" sh -c "cp -r k/$said kept && cp -r k/build moved && '$kb' verify moved --provenance kept --key release.key.pub"
check_exit 1 "not_checked|not checked|No such file" "statements that are wanted and not there are no pass" "$kb" verify moved --key release.key.pub
# The lock and the sources lie beside the statement, which names them.
check "the statement names the lock and the archive of the sources" python3 - "k/$said" "$variant" <<'PY'
import hashlib, json, pathlib, sys, tarfile
at = pathlib.Path(sys.argv[1])
said = json.load(open(at / f"{sys.argv[2]}.slsa.json"))["predicate"]
named = {d["name"]: d["digest"] for d in said["buildDefinition"]["resolvedDependencies"] + said["runDetails"]["byproducts"]}
for name in ("build.lock", "sources.tar"):
    digest = named[name]["sha256"]
    assert hashlib.sha256((at / f"{digest}.{name}").read_bytes()).hexdigest() == digest
names = tarfile.open(at / f"{named['sources.tar']['sha256']}.sources.tar").getnames()
assert names == sorted(names) and {"build.toml", "tiny_cpu/relu.cpp", "torch-ext/tiny/__init__.py"} <= set(names), names
PY
mkdir again; tar xf "k/$said/"*.sources.tar -C again; cp "k/$said/"*.build.lock again/build.lock
check "they are enough to build it again" build again
same_tree "byte by byte" "k/build/$variant" "again/build/$variant"
# All of it is published, and judged where it was downloaded.
"$kb" registry init --root reg 2>/dev/null; export HF_TOKEN; HF_TOKEN=$("$kb" registry token create --root reg --user me)
"$kb" registry serve --root reg --listen 127.0.0.1:0 --endpoint-file endpoint >/dev/null 2>&1 & pids+=($!)
for _ in $(seq 200); do [ -s endpoint ] && break; sleep 0.05; done
HF_ENDPOINT=$(cat endpoint)
check "it goes up" "$kb" upload k --repo-id me/tiny -q
check "a reader gets all of it" python3 - "$HF_ENDPOINT" <<'PY'
import json, os, sys, urllib.parse, urllib.request
get = lambda path: urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1] + path).read()
for entry in json.loads(get("/api/kernels/me/tiny/tree/v1?recursive=true")):
    if entry["type"] == "file":
        place = os.path.join("got", entry["path"])
        os.makedirs(os.path.dirname(place), exist_ok=True)
        open(place, "wb").write(get("/kernels/me/tiny/resolve/v1/" + urllib.parse.quote(entry["path"])))
PY
check "and can judge it" "$kb" verify got/build --provenance got/provenance --key release.key.pub
same_tree "the statements are those of the build" "k/$said" got/provenance
check_exit 0 "No changes" "publishing it again changes nothing" "$kb" upload k --repo-id me/tiny
sed -i 's/"namespaces"/"plain"/' "k/$said/$variant.slsa.json"
check_exit 1 "statement of variant .* is not true of it" "a statement that is not true is not published" "$kb" upload k --repo-id me/tiny
sed -i 's/"plain"/"namespaces"/' "k/$said/$variant.slsa.json"
# Every change is found, and not signed.
cp -r k bad; echo '# more' >>"bad/build/$variant/layers.py"
check_exit 1 "is not the file of the statement" "a changed file is found" "$kb" verify bad
"$kb" hash bad >/dev/null
check_exit 1 "is not the file of the statement" "also when its digest was made anew" "$kb" verify bad
check_exit 1 "not true" "and such a statement is not signed" "$kb" sign bad --key release.key
cp -r k bad2; sed -i 's/"namespaces"/"plain"/' "bad2/$said/$variant.slsa.json"
check_exit 1 "sandbox" "an edited statement is found" "$kb" verify bad2
check_exit 1 "another statement" "by the signature too" "$kb" verify bad2 --key release.key.pub
cp -r k bad3; echo >>"bad3/$said/$variant.cdx.json"
check_exit 1 "not the bill" "an edited bill of materials is found" "$kb" verify bad3
cp -r k bad4; sed -i 's/"namespaces"/"plain"/' "bad4/$said/$variant.slsa.json"; rm "bad4/$said/$variant.cdx.json"
check_exit 1 "without its bill" "a deleted bill of materials hides nothing" "$kb" verify bad4
cp -r k bad5; mkdir -p "bad5/build/$variant/_ops"; echo evil >"bad5/build/$variant/_ops/__init__.pyc"
check_exit 1 "_ops/__init__.pyc' is not covered by the statement" "bytecode in place of a source is found" "$kb" verify bad5 --key release.key.pub
check_exit 1 "'_ops/__init__.pyc' is bytecode, which no digest covers" "also without a key" "$kb" verify bad5
check_exit 1 "not covered by the statement; delete it" "and is not signed" "$kb" sign bad5 --key release.key
cp -r k bad6; mkdir evil; ln -s "$scratch/evil" "bad6/build/$variant/_ops"
check_exit 1 "_ops' is a link that leads to no file" "a link to a directory cannot stand in for a module" "$kb" verify bad6
# A rebuild of the same bytes keeps the signature, another build does not.
rm -rf k/build; build k >/dev/null 2>&1
check "the same bytes keep their signature" "$kb" verify k --key release.key.pub
echo '// changed' >>k/tiny_cpu/relu.cpp; build k >/dev/null 2>&1
check_exit 1 "not signed" "other bytes lose it" "$kb" verify k --key release.key.pub
