// How COPY TO writes a Parquet or an Arrow file. They travel in a statement as text.
//
// Start at: ColumnarOptions. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tablet/load/file_spec.h"

namespace tessera {

enum class ColumnarCompression : uint8_t { kDefault, kNone, kSnappy, kZstd };

struct ColumnarOptions {
  FileFormat format = FileFormat::kParquet;  ///< kParquet or kArrow
  ColumnarCompression compression = ColumnarCompression::kDefault;
  uint64_t row_group_rows = 122'880;
  bool stream = false;  ///< Arrow's form that has no footer

  /// Four numbers, and back; REQUIRES: the text is such a one.
  std::string ToText() const;
  static ColumnarOptions Of(const std::string& text);
};

}  // namespace tessera
