// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "toolchain/provider.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace kb::toolchain {

/// The tree of an entry, if the store has it.
Result<std::optional<store::TreeRef>> find_tree(store::Store& store, const plan::LockEntry& entry);
/// Unpacks a verified file into the store.
Result<store::TreeRef> add_package(store::Store& store,
                                   const Machine& machine,
                                   const Provider& provider,
                                   const backend::Requirement& requirement,
                                   const plan::LockEntry& entry,
                                   const sys::Path& file);
/// Puts the file of an entry whose tree is there into the export directory.
Result<void> export_file(const Provider& provider,
                         const plan::LockEntry& entry,
                         const Machine& machine,
                         const FetchOptions& options);

/// Makes a tree by running `make.sh` of the sources confined in the root of the compiler; its
/// `out/` is published as the tree of `id`. Made once for equal sources and compiler.
Result<store::TreeRef> generate_tree(std::string_view id,
                                     const std::vector<FileImage>& sources,
                                     const store::TreeRef& compiler,
                                     store::Store& store,
                                     const Machine& machine,
                                     const Confinement& confinement);

} // namespace kb::toolchain
