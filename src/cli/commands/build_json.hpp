// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "build/pipeline.hpp"
#include "build/reproduce.hpp"
#include "document/node.hpp"

#include <string>

namespace kb::cli {

/// What `build` says: "kernel-builder/build-plan/1", "kernel-builder/build/1" and
/// "kernel-builder/reproducible/1", and an estimate in a line for people.
[[nodiscard]] document::Node
json_of(const build::WorkList& work, const plan::Plan& plan, const build::Estimate& estimate);
[[nodiscard]] document::Node json_of(const build::BuildReport& report);
[[nodiscard]] document::Node json_of(const build::ReproduceReport& report);
[[nodiscard]] std::string text_of(const build::Estimate& estimate, unsigned jobs);

} // namespace kb::cli
