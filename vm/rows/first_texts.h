// Which rows may be the first in an order that begins with a text, found without ranking their texts.
//
// Start at: MayBeFirst.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "vm/program/program.h"

namespace tessera::vm {

/// The numbers of rows, ascending, without which the `wanted` first rows by `key` cannot be told: those whose text has no
/// greater head, after what all have in common, than that of the last one wanted. `null`: a byte a row, 1: it has no text.
/// The threads of `threads`, which may be nullptr, share many. REQUIRES: 0 < wanted <= rows < 2^32.
Result<std::vector<uint32_t>> MayBeFirst(std::span<const std::string_view> texts, const uint8_t* null,
                                         const SortKey& key, uint64_t wanted, ThreadPool* threads);

}  // namespace tessera::vm
