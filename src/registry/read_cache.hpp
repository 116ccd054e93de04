// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace kb::registry {

/// Keeps what never changes, such as a file at a commit, up to about `budget` bytes. Two
/// generations: when the young one is full the old one is dropped, so that what is asked for often
/// stays without a list to keep in order. Usable from several threads.
template <typename Value>
class ReadCache {
public:
    explicit ReadCache(std::size_t budget) : half_{budget / 2} {}

    /// Null when it is not here.
    [[nodiscard]] std::shared_ptr<const Value> find(const std::string& key) {
        const std::scoped_lock lock{mutex_};
        if (const auto found = young_.find(key); found != young_.end()) {
            return found->second.value;
        }
        const auto found = old_.find(key);
        if (found == old_.end()) {
            return nullptr;
        }
        Entry entry = std::move(found->second);
        old_.erase(found);
        std::shared_ptr<const Value> value = entry.value;
        add(key, std::move(entry));
        return value;
    }

    /// `bytes`: what the value takes besides its key.
    void put(const std::string& key, std::shared_ptr<const Value> value, std::size_t bytes) {
        const std::scoped_lock lock{mutex_};
        add(key, {.value = std::move(value), .bytes = bytes + key.size()});
    }

private:
    /// Shared: readers use it while it may be dropped here.
    struct Entry {
        std::shared_ptr<const Value> value{};
        std::size_t bytes = 0;
    };

    void add(const std::string& key, Entry entry) {
        if (entry.bytes > half_) {
            return;
        }
        if (young_bytes_ + entry.bytes > half_) {
            old_ = std::exchange(young_, {});
            young_bytes_ = 0;
        }
        young_bytes_ += entry.bytes;
        young_.insert_or_assign(key, std::move(entry));
    }

    std::mutex mutex_;
    std::size_t half_;
    std::size_t young_bytes_ = 0;
    std::unordered_map<std::string, Entry> young_;
    std::unordered_map<std::string, Entry> old_;
};

} // namespace kb::registry
