// Parts of nearly unique texts as codes of one byte: as many different ones as there are codes, and one more.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "compiler/compiler.h"
#include "tests/vm/memory_tablet.h"
#include "vm/encode/dictionary_map.h"
#include "vm/rows/string_pool.h"

namespace tessera {
namespace {

constexpr uint32_t kRows = 100000;

/// The texts begin with one of `different` numbers of `width` digits; one in seven is NULL if there are `nulls`.
std::string TextOf(uint32_t row, uint32_t different, int width) {
  return fmt::format("{:0{}} {}", row % different, width, row);
}
bool IsNull(uint32_t row, bool nulls) { return nulls && row % 7 == 3; }

/// The parts of the first `length` characters of texts that are stored plain, by several threads; nullopt: they have no codes.
/// The status is not OK if they could not be asked for.
Result<std::optional<vm::CodedParts>> PartsOf(const ColumnVector& texts, uint32_t rows, int length,
                                              vm::StringPool* strings) {
  TESSERA_ASSIGN(const auto table,
                 test::MakeMemoryTable(1, "t", {{"s", texts, {{Encoding::kPlain, 0, {}, {}}}}}, rows));
  const auto snapshot = test::MakeSnapshot({table});
  const std::string sql = fmt::format("SELECT substring(s FROM 1 FOR {}) AS p, count(*) FROM t GROUP BY p", length);
  TESSERA_ASSIGN(const Compiled compiled, Compile(sql, *snapshot, {}));
  int map = -1;
  for (const vm::Section& s : compiled.program->sections) {
    for (const vm::Slot& slot : s.slots) map = std::max(map, slot.map);
  }
  if (map < 0) return Status(ErrorCode::kInternal, "no section gives the parts");
  TESSERA_ASSIGN(const ChunkPointer chunk, table->tablets[0]->Chunk(0));
  ThreadPool pool(4);
  return vm::CodeParts(*compiled.program, map, *chunk, strings,
                       [&](size_t n, const auto& f) { return ForEach(&pool, n, f); });
}

class TextParts : public testing::Test {
 protected:
  /// The codes of the first `width` characters, by several threads; each code stands for its text.
  void Code(uint32_t different, bool nulls, int width = 3) {
    SCOPED_TRACE(fmt::format("{} different, {}", different, nulls ? "NULLs" : "no NULL"));
    ColumnVector texts;
    texts.type = SqlType::Text();
    for (uint32_t i = 0; i < kRows; ++i)
      texts.Append(IsNull(i, nulls) ? Value::Null(texts.type) : Value::Text(TextOf(i, different, width)));
    Result<std::optional<vm::CodedParts>> parts = PartsOf(texts, kRows, width, &strings_);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    parts_ = std::move(*parts);
    if (!parts_) return;
    EXPECT_EQ(parts_->has_nulls, nulls);
    ASSERT_EQ(parts_->codes.size(), (kRows + 127) / 128 * 128);
    ASSERT_EQ(parts_->ids.size(), different);
    for (uint32_t i = 0; i < kRows; ++i) {
      const uint8_t code = parts_->codes[i];
      if (IsNull(i, nulls)) {
        ASSERT_EQ(code, vm::CodedParts::kNullCode) << i;
        continue;
      }
      ASSERT_LT(code, different) << i;
      ASSERT_EQ(strings_.Get(parts_->ids[code]), TextOf(i, different, width).substr(0, static_cast<size_t>(width)));
    }
    for (size_t i = kRows; i < parts_->codes.size(); ++i) EXPECT_EQ(parts_->codes[i], 0);
  }

  vm::StringPool strings_;
  std::optional<vm::CodedParts> parts_;
};

/// A part of `length` characters, or fewer where the text ends, has up to as many bytes as its code stands for, or more.
TEST(FewParts, OfCharactersOfSeveralBytes) {
  const std::vector<std::string> words = {"",
                                          "a",
                                          "ab",
                                          "\u00e6",
                                          "a\u00e6b",
                                          "abcdefg",
                                          "abcdefgh",
                                          "abcdefghi",
                                          "\u20acuro",
                                          "\u20ac",
                                          "ab\u00e6cdefgh",
                                          "abcdefg\u00e6",
                                          "\U0001F600x",
                                          std::string("a\0b", 3),
                                          std::string(9, 'z')};
  ColumnVector texts;
  texts.type = SqlType::Text();
  for (uint32_t i = 0; i < 5000; ++i) texts.Append(Value::Text(words[i % words.size()]));
  for (int length = 1; length < 10; ++length) {
    vm::StringPool strings;
    const Result<std::optional<vm::CodedParts>> parts = PartsOf(texts, 5000, length, &strings);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    ASSERT_EQ(parts->has_value(), length < 8) << length;  // of a longer part more bytes than a code stands for
    if (!parts->has_value()) continue;
    for (uint32_t i = 0; i < 5000; ++i) {
      const std::string_view word = words[i % words.size()];
      size_t end = 0;  // of this many characters
      for (int left = length; left > 0 && end < word.size(); --left) {
        do ++end;
        while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80);
      }
      ASSERT_EQ(strings.Get((*parts)->ids[(*parts)->codes[i]]), word.substr(0, end)) << length << " of " << word;
    }
  }
}

TEST_F(TextParts, AsManyAsThereAreCodes) {
  for (const bool nulls : {false, true}) {
    for (const uint32_t different : {1u, 254u, 255u}) {
      Code(different, nulls);
      EXPECT_TRUE(parts_.has_value()) << different;
    }
    Code(256, nulls);
    EXPECT_FALSE(parts_.has_value());
  }
}

TEST_F(TextParts, AreShort) {
  Code(50, true, 8);
  EXPECT_TRUE(parts_.has_value());
  Code(50, true, 9);
  EXPECT_FALSE(parts_.has_value());
}

}  // namespace
}  // namespace tessera
