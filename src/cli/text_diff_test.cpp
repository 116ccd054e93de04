// SPDX-License-Identifier: Apache-2.0
#include "cli/text_diff.hpp"

#include "support/catch.hpp"

using kb::cli::unified_diff;

TEST_CASE("equal texts have no difference", "[cli][text_diff]") {
    CHECK(unified_diff("f", "a\nb\n", "a\nb\n").empty());
}

TEST_CASE("a change shows three lines around it", "[cli][text_diff]") {
    CHECK(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nx\n6\n7\n8\n") ==
          "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
    CHECK(unified_diff("f", "", "a\n") == "--- f\n+++ f\n@@ -1,0 +1,1 @@\n+a\n");
    CHECK(unified_diff("f", "a\n", "") == "--- f\n+++ f\n@@ -1,1 +1,0 @@\n-a\n");
}

TEST_CASE("changes far apart are hunks of their own", "[cli][text_diff]") {
    CHECK(
        unified_diff("f", "a\n1\n2\n3\n4\n5\n6\n7\n8\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\n8\nb\nc\n") ==
        "--- f\n+++ f\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n"
        "@@ -8,3 +8,4 @@\n 7\n 8\n b\n+c\n");
    CHECK(unified_diff("f", "a\n1\n2\n3\n4\nb\n", "A\n1\n2\n3\n4\nB\n") ==
          "--- f\n+++ f\n@@ -1,6 +1,6 @@\n-a\n+A\n 1\n 2\n 3\n 4\n-b\n+B\n");
}

TEST_CASE("moved lines are found by what stays common", "[cli][text_diff]") {
    CHECK(unified_diff("f", "a\nb\nc\n", "b\nc\na\n") ==
          "--- f\n+++ f\n@@ -1,3 +1,3 @@\n-a\n b\n c\n+a\n");
}
