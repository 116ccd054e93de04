#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums what test programs said, prints the time table and the closing line "N passed, N failed[, N skipped]".

Reads CTest's JUnit files. A test program reports its own cases in its output: Catch2's closing line, or a line
"N passed, N failed[, N skipped]"; one that says neither counts as one case. Lines "SKIPPED: why" must stand in the
file of expected skips. Exit 1 on a failure, an unexpected skip, no test at all, or a run beyond the whole budget.
"""
import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

TOTAL_BUDGET_SECONDS = 65 * 60
CATCH_GOOD = re.compile(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)")
CATCH_BAD = re.compile(r"test cases:\s+(\d+) \|\s+(?:(\d+) passed \|\s+)?(\d+) failed")
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
SKIP = re.compile(r"^SKIPPED: (.*)$", re.M)


def count(case):
    """(passed, failed, [reasons of skips]) of one CTest test."""
    text = "\n".join(e.text or "" for e in case.iter("system-out"))
    failed_run = case.find("failure") is not None or case.get("status") == "fail"
    skips = SKIP.findall(text)
    passed = failed = 0
    for good in CATCH_GOOD.findall(text):
        passed += int(good)
    for all_cases, good, bad in CATCH_BAD.findall(text):
        passed += int(good or 0)
        failed += int(bad)
    for good, bad, _ in PLAIN.findall(text):
        passed += int(good)
        failed += int(bad)
    if failed_run and failed == 0:
        failed = 1
    if not failed_run and passed == 0 and failed == 0 and not skips:
        passed = 1
    return passed, failed, skips


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=pathlib.Path)
    parser.add_argument("--expected-skips", type=pathlib.Path)
    parser.add_argument("--failed-steps", type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    passed = failed = 0
    skips = []
    for path in args.files:
        if not path.exists():
            continue
        for case in ET.parse(path).iter("testcase"):
            p, f, s = count(case)
            passed, failed, skips = passed + p, failed + f, skips + s
            if f:
                print(f"FAILED {path.stem}: {case.get('name')}")
    if args.failed_steps and args.failed_steps.exists():
        steps = args.failed_steps.read_text().split("\n")
        if failed == 0:
            failed += len([s for s in steps if s])
    expected = []
    if args.expected_skips and args.expected_skips.exists():
        lines = args.expected_skips.read_text().splitlines()
        expected = [line for line in lines if line and not line.startswith("#")]
    for reason in skips:
        if not any(re.fullmatch(e, reason) for e in expected):
            print(f"FAILED an unexpected skip: {reason}")
            failed += 1
    total = 0
    if args.times and args.times.exists():
        print(f"{'step':<22}{'seconds':>9}{'budget':>9}")
        for line in args.times.read_text().splitlines():
            name, seconds, budget = line.split("\t")
            total += int(seconds)
            note = "  over" if int(seconds) > int(budget) else ""
            print(f"{name:<22}{seconds:>9}{budget:>9}{note}")
        print(f"{'all':<22}{total:>9}{TOTAL_BUDGET_SECONDS:>9}")
    if total > TOTAL_BUDGET_SECONDS:
        print("FAILED the run took longer than its whole budget")
        failed += 1
    print(f"{passed} passed, {failed} failed" + (f", {len(skips)} skipped" if skips else ""))
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
