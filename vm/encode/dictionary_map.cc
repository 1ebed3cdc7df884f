#include "vm/encode/dictionary_map.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tablet/chunk/tablet_format.h"
#include "vm/meaning/characters.h"
#include "vm/program/tile_rows.h"

namespace tessera::vm {
namespace {

/// To give a text of few its code takes some nanoseconds.
constexpr uint32_t kCodedPerPart = 1 << 15;

/// A section that gives a part of each entry: substring(x, from, length), both constants.
struct ConstantPart {
  int64_t from = 1, length = 0;
  bool bounded = false;
  std::string_view Of(std::string_view text) const { return Substring(text, from, bounded, length); }
};

std::optional<ConstantPart> PartOf(const Program& program, const Section& s) {
  static constexpr Opcode kCode[] = {Opcode::Load, Opcode::SubstringT, Opcode::Store, Opcode::Emit, Opcode::End};
  if (!std::ranges::equal(s.code, kCode, {}, &Instruction::op)) return std::nullopt;
  const Operand loaded = Operand::Unpack(s.code[0].p2), stored = Operand::Register(s.code[2].p2);
  if (loaded.kind != OperandKind::kSlot || s.columns.size() != 1 || stored.index != 0) return std::nullopt;
  const auto number = [&](int32_t packed, int64_t* value) {
    const Operand o = Operand::Unpack(packed);
    if (o.kind != OperandKind::kConstant || program.constants[o.index].null) return false;
    *value = program.constants[o.index].i64;
    return true;
  };
  ConstantPart part;
  part.bounded = s.code[1].p3 != -1;
  if (!number(s.code[1].p2, &part.from)) return std::nullopt;
  if (part.bounded && (!number(s.code[1].p3, &part.length) || part.length < 0)) return std::nullopt;
  return part;
}

/// Numbers of the parts of texts, of which the same few come again and again.
class FewTexts {
 public:
  static constexpr size_t kLongest = sizeof(uint64_t);

  explicit FewTexts(const ConstantPart& part) : part_(part) {
    if (part.from != 1 || !part.bounded || part.length < 1 || part.length > static_cast<int64_t>(kLongest)) return;
    prefix_ = static_cast<size_t>(part.length);
    shift_ = static_cast<int>(64 - 8 * prefix_);
  }

  /// The number of the part of `text`. `find`: gives the number, not below 0, of a part that may have come before.
  template <class F>
  int64_t Of(std::string_view text, const F& find) {
    if (prefix_ > 0 && text.size() >= kLongest) {
      uint64_t bytes;
      memcpy(&bytes, text.data(), sizeof bytes);
      bytes = __builtin_bswap64(bytes) >> shift_;
      constexpr uint64_t kNotAscii = 0x8080808080808080u;
      if ((bytes & kNotAscii) == 0) return Find(bytes, text.substr(0, prefix_), find);  // a byte is a character
    }
    text = part_.Of(text);
    if (text.size() > kLongest) return find(text);
    uint64_t bytes = 0;
    for (const char c : text) bytes = bytes << 8 | static_cast<uint8_t>(c);
    return Find(bytes, text, find);
  }

 private:
  struct Known {
    uint64_t bytes = 0;
    size_t size = 0;
    int64_t number = -1;
  };
  static constexpr size_t kSteps = 8;

  /// `bytes`: those of the text, as a number.
  template <class F>
  int64_t Find(uint64_t bytes, std::string_view text, const F& find) {
    const size_t home = (bytes * 0x9E3779B97F4A7C15u + text.size()) >> 54;
    for (size_t step = 0; step < kSteps; ++step) {
      Known& known = known_[(home + step) % known_.size()];
      if (known.number < 0) known = {bytes, text.size(), find(text)};
      if (known.bytes == bytes && known.size == text.size()) return known.number;
    }
    known_[home] = {bytes, text.size(), find(text)};
    return known_[home].number;
  }

  const ConstantPart part_;
  size_t prefix_ = 0;  ///< the part is this number of the first characters; 0: another one, or more than kLongest
  int shift_ = 0;
  std::array<Known, 1024> known_;
};

/// Gives the parts of a chunk their codes. Any thread.
class PartCodes {
 public:
  explicit PartCodes(StringPool* strings) : strings_(*strings) {}

  /// kMostTexts: there are too many, or one is too long.
  int64_t CodeOf(std::string_view text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = codes_.find(text); at != codes_.end()) return at->second;
    const auto code = static_cast<int64_t>(ids_.size());
    if (text.size() > FewTexts::kLongest || ids_.size() == CodedParts::kMostTexts) return CodedParts::kMostTexts;
    codes_.emplace(text, code);
    ids_.push_back(strings_.Intern(text));
    return code;
  }
  std::vector<int64_t> TakeIds() { return std::move(ids_); }

 private:
  StringPool& strings_;
  std::mutex mutex_;
  std::map<std::string, int64_t, std::less<>> codes_;
  std::vector<int64_t> ids_;
};

}  // namespace

void InternEntries(const Chunk& chunk, uint32_t first, uint32_t end, StringPool* strings, int64_t* ids) {
  std::vector<std::string_view> texts;
  texts.reserve(end - first);
  for (uint32_t i = first; i < end; ++i) texts.push_back(chunk.Entry(i));
  strings->Intern(texts, ids);
}

Status ForEntries(uint32_t entries, const LoopRunner& loop, const std::function<Status(uint32_t, uint32_t)>& f,
                  uint32_t per_part) {
  const size_t parts = (size_t{entries} + per_part - 1) / per_part;
  std::vector<Status> errors(parts);
  const auto part = [&](size_t i) {
    const uint32_t first = static_cast<uint32_t>(i) * per_part;
    errors[i] = f(first, first + std::min(entries - first, per_part));
    return errors[i];
  };
  Status stopped;
  if (parts > 1 && loop) {
    stopped = loop(parts, part);
  } else {
    for (size_t i = 0; i < parts && stopped.ok(); ++i) stopped = part(i);
  }
  for (const Status& error : errors) {
    if (!error.ok()) return error;
  }
  return stopped;
}

Result<std::optional<CodedParts>> CodeParts(const Program& program, int section, const Chunk& chunk,
                                            StringPool* strings, const LoopRunner& loop) {
  const std::optional<ConstantPart> part = PartOf(program, program.sections[static_cast<size_t>(section)]);
  if (!part || chunk.encoding != Encoding::kPlain) return std::optional<CodedParts>();
  CodedParts out;
  out.has_nulls = chunk.null_bytes != nullptr;
  out.codes.resize(AlignToStream(chunk.rows));
  std::fill(out.codes.begin() + chunk.rows, out.codes.end(), uint8_t{0});
  PartCodes known(strings);
  std::atomic<bool> too_many{false};
  TESSERA_TRY(ForEntries(
      chunk.rows, loop,
      [&](uint32_t first, uint32_t end) {
        FewTexts texts(*part);
        const auto find = [&](std::string_view text) { return known.CodeOf(text); };
        for (uint32_t i = first; i < end; ++i) {
          if (out.has_nulls && chunk.null_bytes[i] != 0) {
            out.codes[i] = CodedParts::kNullCode;
            continue;
          }
          const int64_t code = texts.Of(chunk.Entry(i), find);
          if (code == CodedParts::kMostTexts) too_many = true;
          if (too_many.load(std::memory_order_relaxed)) break;
          out.codes[i] = static_cast<uint8_t>(code);
        }
        return Status::Ok();
      },
      kCodedPerPart));
  if (too_many) return std::optional<CodedParts>();
  out.ids = known.TakeIds();
  return std::optional<CodedParts>(std::move(out));
}

Result<DictionaryMap> MapDictionary(const Program& program, int section, const Chunk& chunk, StringPool* strings,
                                    EntryInterpreterMaker interpreter, const LoopRunner& loop) {
  const Section& s = program.sections[static_cast<size_t>(section)];
  DictionaryMap map;
  map.kept.resize(chunk.entries);
  if (!s.columns.empty()) {
    map.values.reserve(size_t{chunk.entries} + 1);  // a caller adds one
    map.values.resize(chunk.entries);
    map.null.assign(chunk.entries, 1);
  }
  if (const std::optional<ConstantPart> part = PartOf(program, s)) {
    const Status status = ForEntries(chunk.entries, loop, [&](uint32_t first, uint32_t end) {
      FewTexts texts(*part);
      const auto intern = [&](std::string_view text) { return strings->Intern(text); };
      for (uint32_t i = first; i < end; ++i) map.values[i] = texts.Of(chunk.Entry(i), intern);
      std::fill(map.kept.begin() + first, map.kept.begin() + end, uint8_t{1});
      std::fill(map.null.begin() + first, map.null.begin() + end, uint8_t{0});
      return Status::Ok();
    });
    if (!status.ok()) return status;
    return map;
  }
  const bool gives_text = !s.columns.empty() && s.columns[0].storage() == StorageClass::kText;
  std::mutex mutex;
  std::vector<std::unique_ptr<EntryInterpreter>> idle;
  const auto take_idle = [&] {
    std::unique_ptr<EntryInterpreter> machine;
    const std::lock_guard<std::mutex> lock(mutex);
    if (!idle.empty()) {
      machine = std::move(idle.back());
      idle.pop_back();
    }
    return machine;
  };
  const Status status = ForEntries(chunk.entries, loop, [&](uint32_t first, uint32_t end) {
    std::unique_ptr<EntryInterpreter> machine = take_idle();
    if (machine == nullptr) machine = interpreter(program, section, strings);
    std::vector<uint32_t> entries;
    std::vector<std::string_view> texts;
    for (uint32_t at = first; at < end; at += kTileRows) {
      entries.resize(std::min<uint32_t>(kTileRows, end - at));
      std::iota(entries.begin(), entries.end(), at);
      TESSERA_TRY(machine->Run(chunk, entries));
      const DictionaryMap& made = machine->values();
      std::copy(made.kept.begin(), made.kept.end(), map.kept.begin() + at);
      if (s.columns.empty()) continue;
      std::copy(made.null.begin(), made.null.end(), map.null.begin() + at);
      if (!gives_text) {
        std::copy(made.values.begin(), made.values.end(), map.values.begin() + at);
        continue;
      }
      texts.resize(entries.size());
      for (size_t i = 0; i < texts.size(); ++i) texts[i] = made.null[i] != 0 ? std::string_view() : machine->Text(i);
      strings->Intern(texts, map.values.data() + at);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(machine));
    return Status::Ok();
  });
  if (!status.ok()) return status;
  return map;
}

}  // namespace tessera::vm
