// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/database.hpp"
#include "registry/meta_store.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kb::registry {

/// A number that the database carries; a newer one than ours is refused.
inline constexpr std::int64_t kSchemaVersion = 2;

/// Makes the file with the schema, or brings an older one up to date.
[[nodiscard]] Result<void> prepare_database(const std::string& path, OpenMode mode);

/// MetaStore in one SQLite file that prepare_database() has made.
[[nodiscard]] std::unique_ptr<MetaStore> make_sqlite_meta_store(const std::string& path);

} // namespace kb::registry
