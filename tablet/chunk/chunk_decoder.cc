// Decoding for the host's slow paths; the interpreters have their own loops.
#include "tablet/chunk/chunk_decoder.h"

#include <bit>
#include <cassert>
#include <cstring>

#include "tablet/values/ordered_float.h"

namespace tessera {
namespace {

template <class Code>
Code LoadCode(const Chunk& chunk, uint32_t row) {
  Code code;
  memcpy(&code, chunk.codes + uint64_t{row} * sizeof code, sizeof code);
  return code;
}

/// The bits that ColumnVector::fixed holds for an integer or ordered form.
int64_t FixedFromKey(const SqlType& type, uint64_t key) {
  if (type.id == TypeId::kReal) {
    return std::bit_cast<int64_t>(static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(key))));
  }
  if (type.id == TypeId::kDouble) return std::bit_cast<int64_t>(FromOrderedFloat(key));
  return static_cast<int64_t>(key);
}

int64_t FixedAt(const Chunk& chunk, uint32_t row) {
  return FixedFromKey(chunk.type, static_cast<uint64_t>(chunk.base) + CodeAt(chunk, row));
}

int128_t WideAt(const Chunk& chunk, uint32_t row) {
  if (chunk.width == 16) return LoadCode<int128_t>(chunk, row);
  return chunk.base + static_cast<int128_t>(CodeAt(chunk, row));
}

}  // namespace

uint64_t CodeAt(const Chunk& chunk, uint32_t row) {
  switch (chunk.width) {
    case 0:
      return chunk.encoding == Encoding::kPlain ? row : 0;
    case 1:
      return LoadCode<uint8_t>(chunk, row);
    case 2:
      return LoadCode<uint16_t>(chunk, row);
    case 4:
      return LoadCode<uint32_t>(chunk, row);
    default:
      assert(chunk.width == 8);
      return LoadCode<uint64_t>(chunk, row);
  }
}

bool IsNullAt(const Chunk& chunk, uint32_t row) {
  if (!chunk.has_nulls) return false;
  if (chunk.encoding == Encoding::kConstant) return true;
  if (chunk.encoding == Encoding::kPlain) return chunk.null_bytes[row] != 0;
  if (chunk.width == 16) return LoadCode<int128_t>(chunk, row) == chunk.null_code_wide;
  return CodeAt(chunk, row) == chunk.null_code;
}

void DecodeChunk(const Chunk& chunk, uint32_t begin, uint32_t rows, ColumnVector* out) {
  const size_t before = out->size();
  if (chunk.has_nulls) {
    out->null.resize(before, 0);
    for (uint32_t i = 0; i < rows; ++i) out->null.push_back(IsNullAt(chunk, begin + i));
  } else if (!out->null.empty()) {
    out->null.resize(before + rows, 0);
  }
  auto is_null = [&](uint32_t i) { return chunk.has_nulls && out->null[before + i] != 0; };
  switch (chunk.type.storage()) {
    case StorageClass::kText:
      if (out->offsets.empty()) out->offsets.push_back(0);
      for (uint32_t i = 0; i < rows; ++i) {
        if (!is_null(i)) out->bytes.append(chunk.Entry(static_cast<uint32_t>(CodeAt(chunk, begin + i))));
        out->offsets.push_back(out->bytes.size());
      }
      break;
    case StorageClass::kWide:
      out->wide.reserve(before + rows);
      for (uint32_t i = 0; i < rows; ++i) out->wide.push_back(is_null(i) ? 0 : WideAt(chunk, begin + i));
      break;
    default:
      out->fixed.reserve(before + rows);
      for (uint32_t i = 0; i < rows; ++i) out->fixed.push_back(is_null(i) ? 0 : FixedAt(chunk, begin + i));
      break;
  }
}

Value DecodeValue(const Chunk& chunk, uint32_t row) {
  if (IsNullAt(chunk, row)) return Value::Null(chunk.type);
  switch (chunk.type.storage()) {
    case StorageClass::kText: {
      Value value = Value::Text(std::string(chunk.Entry(static_cast<uint32_t>(CodeAt(chunk, row)))));
      value.type = chunk.type;
      return value;
    }
    case StorageClass::kWide:
      return Value::Wide(chunk.type, WideAt(chunk, row));
    case StorageClass::kFloat:
      return Value::Float(chunk.type, std::bit_cast<double>(FixedAt(chunk, row)));
    case StorageClass::kInt:
      break;
  }
  return Value::Int(chunk.type, FixedAt(chunk, row));
}

}  // namespace tessera
