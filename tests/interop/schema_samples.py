#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Good samples of edition 5 validate against the editor schema, bad ones do not, as far as a schema can say."""
import json
import pathlib
import sys
import tomllib

import jsonschema

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Mistakes that a schema cannot see: no TOML at all, or a rule between a URL's parts.
BEYOND = {"02-toml-syntax.toml", "32-duplicate-key.toml", "28-git-url-scheme.toml", "29-git-url-garbage.toml"}


def main():
    schema = json.loads((ROOT / "schemas" / "build-toml.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    passed = failed = 0
    for path in sorted((HERE / "oracle" / "samples").glob("*/*.toml")):
        if path.name in BEYOND:
            continue
        document = tomllib.loads(path.read_text())
        good = path.parent.name == "good" and "edition" in document.get("general", {})
        errors = [e.message for e in validator.iter_errors(document)]
        if bool(errors) == good:
            failed += 1
            print(f"{path.parent.name}/{path.name}: {errors or 'no error found'}")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
