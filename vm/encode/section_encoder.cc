// Encoding a tablet for a section. Bounds of all types are brought to one form, the integer form of Chunk::min:
// integers as they are, floats by their order-preserving map, strings as codes of the chunk's dictionary. In this form
// a predicate is an interval or a set.

#include "vm/encode/section_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "tablet/chunk/packed_chunk.h"
#include "tablet/files/io_error.h"
#include "tablet/values/ordered_float.h"
#include "vm/program/section_traits.h"

namespace tessera::vm {
namespace {

using Kind = PredicateEncoding::Kind;

/// Codes of this number of bytes are few enough for a list of numbers to say of each whether it is in it.
constexpr int kWidestListed = 2;

/// An interval of values in integer form, both ends included; empty if low > high.
struct Interval {
  int128_t low = kInt128Min, high = kInt128Max;
};

/// The predicate's interval of floats in ordered form. -0.0 and 0.0 are one value with two codes; NaN is the greatest.
Interval FloatInterval(const Program& program, const Predicate& p, bool single) {
  Interval out{0, static_cast<int128_t>(single ? uint64_t{kOrderedNaN32} : kOrderedNaN)};
  auto code = [&](double v) {
    return static_cast<int128_t>(single ? uint64_t{OrderedFloat32(static_cast<float>(v))} : OrderedFloat(v));
  };
  // The nearest value to v that the column can hold.
  auto held = [&](double v) { return single && v == v ? static_cast<double>(static_cast<float>(v)) : v; };
  if (p.low >= 0) {
    double v = program.constants[static_cast<size_t>(p.low)].f64;
    double h = held(v);
    if (v == 0) {
      out.low = p.low_inclusive ? code(-0.0) : code(0.0) + 1;
    } else {
      out.low = code(h) + ((h == v || v != v) ? (p.low_inclusive ? 0 : 1) : (h < v ? 1 : 0));
    }
  }
  if (p.high >= 0) {
    double v = program.constants[static_cast<size_t>(p.high)].f64;
    double h = held(v);
    if (v == 0) {
      out.high = p.high_inclusive ? code(0.0) : code(-0.0) - 1;
    } else {
      out.high = code(h) - ((h == v || v != v) ? (p.high_inclusive ? 0 : 1) : (h > v ? 1 : 0));
    }
  }
  return out;
}

Interval NumberInterval(const Program& program, const Predicate& p, const SqlType& type) {
  if (type.IsFloat()) return FloatInterval(program, p, type.id == TypeId::kReal);
  auto value = [&](int32_t c) {
    const Value& v = program.constants[static_cast<size_t>(c)];
    return IsWide(type) ? v.wide : static_cast<int128_t>(v.i64);
  };
  // Both ends become inclusive. An exclusive bound at the end of 128 bits leaves no value.
  Interval out;
  if (p.low >= 0) {
    out.low = value(p.low);
    if (!p.low_inclusive) {
      if (out.low == kInt128Max) return {1, 0};
      ++out.low;
    }
  }
  if (p.high >= 0) {
    out.high = value(p.high);
    if (!p.high_inclusive) {
      if (out.high == kInt128Min) return {1, 0};
      --out.high;
    }
  }
  return out;
}

class PredicateEncoder {
 public:
  PredicateEncoder(const Program& program, const Chunk& chunk, StringPool* strings, EntryInterpreterMaker interpreter,
                   const std::vector<KeyRange>& key_ranges, const LoopRunner& loop, TabletEncoding* out)
      : program_(program),
        chunk_(chunk),
        strings_(strings),
        interpreter_(interpreter),
        key_ranges_(key_ranges),
        loop_(loop),
        out_(out) {}

  Result<PredicateEncoding> Encode(const Predicate& p) {
    PredicateEncoding b;
    b.slot = p.slot;
    if (p.kind == Predicate::Kind::kIsNull || p.kind == Predicate::Kind::kIsNotNull) {
      return Nulls(b, p.kind == Predicate::Kind::kIsNotNull);
    }
    if (chunk_.null_count == chunk_.rows) return Constant(b, false);
    if (p.kind == Predicate::Kind::kKeyRange) {
      const size_t join = static_cast<size_t>(p.join);
      if (join >= key_ranges_.size() || !key_ranges_[join].known) return Constant(b, true);
      return Range(b, {key_ranges_[join].low, key_ranges_[join].high}, false);
    }
    if (chunk_.type.storage() == StorageClass::kText) return Text(b, p);
    if (p.kind == Predicate::Kind::kRange) return Range(b, NumberInterval(program_, p, chunk_.type), p.negated);
    return In(b, p);
  }

  /// Whether no row passes, as far as that is known without reading the chunk's streams.
  Result<bool> RangeLeavesNone(const Predicate& p) {
    PredicateEncoding b;
    const bool nulls = p.kind == Predicate::Kind::kIsNull || p.kind == Predicate::Kind::kIsNotNull;
    const bool all_null = chunk_.null_count == chunk_.rows;
    if (p.kind == Predicate::Kind::kIn && !nulls && !all_null) {
      if (chunk_.type.storage() == StorageClass::kText || p.negated) return false;
      return std::none_of(p.list.begin(), p.list.end(), [&](int32_t c) {
        const Interval i = Held(c);
        return i.low <= i.high;
      });
    }
    const bool text = chunk_.type.storage() == StorageClass::kText && p.kind != Predicate::Kind::kKeyRange;
    if (text && !nulls && !all_null) return false;
    TESSERA_ASSIGN(b, Encode(p));
    return b.kind == Kind::kNone;
  }

  /// A test of texts that the device makes. `share`: as in another tablet; nullptr: not known.
  Result<PredicateEncoding> OnDevice(const Predicate& p, const float* share) {
    PredicateEncoding b;
    b.slot = p.slot;
    b.kind = Kind::kSet;
    b.by_row = b.on_device = true;
    b.set_bytes = chunk_.rows;
    if (share != nullptr) {
      b.share = *share;
      return b;
    }
    Chunk sample = chunk_;
    sample.entries = std::min(sample.entries, kSampledEntries);
    TESSERA_ASSIGN(const DictionaryMap map, MapDictionary(program_, p.map, sample, strings_, interpreter_, {}));
    const auto kept = std::count(map.kept.begin(), map.kept.end(), p.negated ? 0 : 1);
    b.share = static_cast<float>(kept) / static_cast<float>(sample.entries);
    return b;
  }

 private:
  static constexpr uint32_t kSampledEntries = 256;

  static PredicateEncoding Constant(PredicateEncoding b, bool passes) {
    b.kind = passes ? Kind::kAll : Kind::kNone;
    return b;
  }

  /// Whether no row is NULL.
  bool NoNulls() const { return chunk_.null_count == 0; }

  Result<PredicateEncoding> Nulls(PredicateEncoding b, bool negated) {
    if (NoNulls()) return Constant(b, negated);
    if (chunk_.null_count == chunk_.rows) return Constant(b, !negated);
    if (chunk_.null_bytes != nullptr) {
      b.kind = Kind::kNulls;
      b.null_bytes = chunk_.null_bytes;
      b.negated = negated;
      return b;
    }
    b.kind = Kind::kRange;
    b.negated = negated;
    SetLow(&b, chunk_.width == 16 ? chunk_.null_code_wide : static_cast<int128_t>(chunk_.null_code));
    return b;
  }

  static void SetLow(PredicateEncoding* b, int128_t code) {
    b->low = static_cast<uint64_t>(Low64(code));
    b->low_high = static_cast<uint64_t>(High64(code));
  }

  /// The code of a value within [min, max].
  int128_t CodeOf(int128_t value) const {
    if (chunk_.type.storage() == StorageClass::kText) return value;
    if (chunk_.width == 16) return WrapSub128(value, chunk_.base);
    return static_cast<int128_t>(static_cast<uint64_t>(Low64(value)) - static_cast<uint64_t>(Low64(chunk_.base)));
  }
  static int128_t WrapSub128(int128_t a, int128_t b) {
    return static_cast<int128_t>(static_cast<uint128_t>(a) - static_cast<uint128_t>(b));
  }

  /// A predicate that values in `in` pass (if negated: values outside it); NULL never passes.
  Result<PredicateEncoding> Range(PredicateEncoding b, Interval in, bool negated) {
    in.low = std::max(in.low, chunk_.min);
    in.high = std::min(in.high, chunk_.max);
    const bool none = in.low > in.high;
    const bool all = !none && in.low == chunk_.min && in.high == chunk_.max;
    if (chunk_.width == 0 || NoNulls()) {
      if (none || all) return Constant(b, all != negated);
    } else if (negated ? all : none) {
      return Constant(b, false);
    }
    // From here on there is a stream of codes. "All but NULL" is the interval of all values.
    if (none) {
      in = {chunk_.min, chunk_.max};
      negated = false;
    }
    b.kind = Kind::kRange;
    b.negated = negated;
    const int128_t low = CodeOf(in.low);
    SetLow(&b, low);
    const uint128_t span = static_cast<uint128_t>(in.high) - static_cast<uint128_t>(in.low);
    b.span = static_cast<uint64_t>(span);
    b.span_high = static_cast<uint64_t>(span >> 64);
    if (!NoNulls()) {
      bool inside;
      if (chunk_.width == 16) {
        inside = static_cast<uint128_t>(WrapSub128(chunk_.null_code_wide, low)) <= span;
      } else {
        // Differences are computed in the width of the code, as in the interpreters.
        const uint64_t mask = chunk_.width == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * chunk_.width)) - 1;
        inside = ((chunk_.null_code - static_cast<uint64_t>(Low64(low))) & mask) <= b.span;
      }
      b.exclude_null = negated ? !inside : inside;
    }
    return b;
  }

  uint8_t* NewSet(uint64_t bytes, PredicateEncoding* b) {
    out_->storage.push_back(std::make_unique<uint8_t[]>(bytes));  // zeroed
    b->set_bytes = bytes;
    return out_->storage.back().get();
  }

  /// The values of the chunk's range that are equal to a constant.
  Interval Held(int32_t constant) const {
    Predicate one;
    one.low = one.high = constant;
    const Interval i = NumberInterval(program_, one, chunk_.type);
    return {std::max(i.low, chunk_.min), std::min(i.high, chunk_.max)};
  }

  Result<PredicateEncoding> In(PredicateEncoding b, const Predicate& p) {
    std::vector<Interval> parts;
    for (int32_t c : p.list) {
      const Interval i = Held(c);
      if (i.low <= i.high) parts.push_back(i);
    }
    if (parts.empty()) return Range(b, {1, 0}, p.negated);
    std::sort(parts.begin(), parts.end(), [](const Interval& x, const Interval& y) { return x.low < y.low; });
    size_t n = 1;  // neighbours become one interval
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].low <= parts[n - 1].high || parts[i].low == parts[n - 1].high + 1) {
        parts[n - 1].high = std::max(parts[n - 1].high, parts[i].high);
      } else {
        parts[n++] = parts[i];
      }
    }
    parts.resize(n);
    if (n == 1) return Range(b, parts[0], p.negated);
    b.kind = Kind::kSet;
    // One byte a code if there are few codes, else one byte a row.
    if (chunk_.width <= kWidestListed) {
      const uint64_t codes = uint64_t{1} << 8 * chunk_.width;
      uint8_t* set = NewSet(codes, &b);
      if (p.negated) memset(set, 1, codes);
      for (const Interval& i : parts) {
        memset(set + static_cast<uint64_t>(CodeOf(i.low)), p.negated ? 0 : 1, static_cast<size_t>(i.high - i.low) + 1);
      }
      if (!NoNulls()) set[chunk_.null_code] = 0;
      b.set = set;
      return b;
    }
    uint8_t* set = NewSet(chunk_.rows, &b);
    for (uint32_t row = 0; row < chunk_.rows; ++row) {
      int128_t value;
      if (chunk_.width == 16) {
        int128_t code;
        memcpy(&code, chunk_.codes + size_t{16} * row, 16);
        if (chunk_.has_nulls && code == chunk_.null_code_wide) continue;
        value = static_cast<int128_t>(static_cast<uint128_t>(chunk_.base) + static_cast<uint128_t>(code));
      } else {
        uint64_t code = 0;
        memcpy(&code, chunk_.codes + size_t{chunk_.width} * row, chunk_.width);
        if (chunk_.has_nulls && code == chunk_.null_code) continue;
        value = chunk_.min + static_cast<int128_t>(code - static_cast<uint64_t>(CodeOf(chunk_.min)));
      }
      auto after =
          std::upper_bound(parts.begin(), parts.end(), value, [](int128_t v, const Interval& i) { return v < i.low; });
      const bool in = after != parts.begin() && value <= (after - 1)->high;
      set[row] = in != p.negated ? 1 : 0;
    }
    b.set = set;
    b.by_row = true;
    return b;
  }

  /// Whether one string is within the bounds, before negation.
  bool TextPasses(const Predicate& p, std::string_view s) const {
    if (p.low >= 0) {
      int c = s.compare(program_.constants[static_cast<size_t>(p.low)].text);
      if (c < 0 || (c == 0 && !p.low_inclusive)) return false;
    }
    if (p.high >= 0) {
      int c = s.compare(program_.constants[static_cast<size_t>(p.high)].text);
      if (c > 0 || (c == 0 && !p.high_inclusive)) return false;
    }
    return true;
  }

  /// The first code whose entry is not less than `text`; if `after`: is greater than `text`.
  int128_t CodeBound(std::string_view text, bool after) const {
    uint32_t low = 0, high = chunk_.entries;
    while (low < high) {
      uint32_t middle = low + (high - low) / 2;
      int c = chunk_.Entry(middle).compare(text);
      if (c < 0 || (after && c == 0)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  Result<PredicateEncoding> Text(PredicateEncoding b, const Predicate& p) {
    if (p.kind == Predicate::Kind::kRange && chunk_.encoding == Encoding::kDictionary) {
      Interval in;
      if (p.low >= 0) in.low = CodeBound(program_.constants[static_cast<size_t>(p.low)].text, !p.low_inclusive);
      if (p.high >= 0) in.high = CodeBound(program_.constants[static_cast<size_t>(p.high)].text, p.high_inclusive) - 1;
      return Range(b, in, p.negated);
    }
    // Decide entry by entry. The set then gives the answer for each code, or for each row if the chunk is stored plain.
    const uint32_t entries = chunk_.entries;
    std::vector<uint8_t> passes(entries);
    if (p.kind == Predicate::Kind::kMapped) {
      TESSERA_ASSIGN(DictionaryMap map, MapDictionary(program_, p.map, chunk_, strings_, interpreter_, loop_));
      for (uint32_t i = 0; i < entries; ++i) passes[i] = (map.kept[i] != 0) != p.negated ? 1 : 0;
    } else if (p.kind == Predicate::Kind::kIn && chunk_.encoding == Encoding::kDictionary) {
      if (p.negated) std::fill(passes.begin(), passes.end(), uint8_t{1});
      for (int32_t c : p.list) {
        const std::string& text = program_.constants[static_cast<size_t>(c)].text;
        int128_t at = CodeBound(text, false);
        if (at < entries && chunk_.Entry(static_cast<uint32_t>(at)) == text)
          passes[static_cast<size_t>(at)] = p.negated ? 0 : 1;
      }
    } else if (p.kind == Predicate::Kind::kIn) {
      // (To compare each entry with each text of a long list takes seconds.)
      std::unordered_set<std::string_view> texts;
      for (int32_t c : p.list) texts.insert(program_.constants[static_cast<size_t>(c)].text);
      TESSERA_TRY(ForEntries(entries, loop_, [&](uint32_t first, uint32_t end) {
        for (uint32_t i = first; i < end; ++i) passes[i] = texts.contains(chunk_.Entry(i)) != p.negated ? 1 : 0;
        return Status::Ok();
      }));
    } else {
      TESSERA_TRY(ForEntries(entries, loop_, [&](uint32_t first, uint32_t end) {
        for (uint32_t i = first; i < end; ++i) passes[i] = TextPasses(p, chunk_.Entry(i)) != p.negated ? 1 : 0;
        return Status::Ok();
      }));
    }
    if (chunk_.encoding == Encoding::kConstant) return Constant(b, entries > 0 && passes[0] != 0);
    if (chunk_.encoding == Encoding::kDictionary) {
      const auto first = std::find(passes.begin(), passes.end(), uint8_t{1});
      if (first == passes.end()) return Constant(b, false);
      const auto end = std::find(first, passes.end(), uint8_t{0});
      if (std::find(end, passes.end(), uint8_t{1}) == passes.end()) {
        return Range(b, {first - passes.begin(), end - passes.begin() - 1}, false);
      }
      // The set has every code of the width, or all that occur.
      const uint64_t size =
          chunk_.width == 1 ? 256 : std::max<uint64_t>(entries, chunk_.has_nulls ? chunk_.null_code + 1 : 0);
      uint8_t* set = NewSet(size, &b);
      memcpy(set, passes.data(), entries);
      b.kind = Kind::kSet;
      b.set = set;
      return b;
    }
    uint8_t* set = NewSet(chunk_.rows, &b);
    for (uint32_t row = 0; row < chunk_.rows; ++row)
      set[row] = chunk_.null_bytes != nullptr && chunk_.null_bytes[row] != 0 ? 0 : passes[row];
    b.kind = Kind::kSet;
    b.set = set;
    b.by_row = true;
    return b;
  }

  const Program& program_;
  const Chunk& chunk_;
  StringPool* strings_;
  EntryInterpreterMaker interpreter_;
  const std::vector<KeyRange>& key_ranges_;
  const LoopRunner& loop_;
  TabletEncoding* out_;
};

/// In dictionaries with more entries than this, the value of an entry is found when a row first needs it, or it is not
/// kept at all: a filter may leave few of a million entries, and an identifier takes 0.2 us.
constexpr uint32_t kLazyEntries = 4096;

/// Whether the chunk's entries are worth the way to a device, and can be tested there.
bool IsLeftToDevice(const Chunk& chunk) {
  constexpr uint32_t kManyEntries = 4096;
  return chunk.type.storage() == StorageClass::kText && chunk.encoding == Encoding::kPlain &&
         chunk.entries >= kManyEntries && chunk.longest_entry <= kLongestOnDevice;
}

/// Makes a tablet share the storage of another tablet's map or set.
void ShareStorage(const void* what, const TabletEncoding& from, TabletEncoding* to) {
  for (const std::shared_ptr<uint8_t[]>& s : from.storage) {
    if (s.get() == what) to->storage.push_back(s);
  }
}

/// Whether a predicate on a dictionary becomes the same in both chunks.
bool EncodesAlike(const Chunk& a, const Chunk& b) {
  return a.encoding == Encoding::kDictionary && a.width == b.width && a.has_nulls == b.has_nulls &&
         a.null_code == b.null_code && a.null_count == 0 && b.null_count == 0 && SameDictionary(a, b);
}

}  // namespace

Status TileCodes::Damaged(const char* reason) const {
  // The whole chunk is damaged in the same way, and says so in the same words each time.
  const Result<ChunkPointer> whole = tablet.Chunk(column);
  if (!whole.ok()) return whole.status();
  return CorruptTablet(tablet.path(), "column " + std::to_string(column + 1) + ": " + reason);
}

bool SameDictionary(const Chunk& a, const Chunk& b) {
  if (a.encoding != b.encoding || a.entries != b.entries || a.encoding == Encoding::kPlain) return false;
  const size_t bytes = a.entry_offsets[a.entries] - a.entry_offsets[0];
  return memcmp(a.entry_offsets, b.entry_offsets, (size_t{a.entries} + 1) * sizeof *a.entry_offsets) == 0 &&
         memcmp(a.entry_bytes + a.entry_offsets[0], b.entry_bytes + b.entry_offsets[0], bytes) == 0;
}

SectionEncoder::SectionEncoder(const Program& program, int section, const SectionTraits& traits, StringPool* strings,
                               EntryInterpreterMaker interpreter, const std::vector<KeyRange>& key_ranges, bool lazy)
    : program_(program),
      section_(program.sections[static_cast<size_t>(section)]),
      strings_(strings),
      interpreter_(interpreter),
      key_ranges_(key_ranges),
      lazy_(lazy) {
  if (lazy) uses_ = FindTextUses(section_, traits);
  drops_rows_ = TopRowsOf(section_) > 0;
  for (size_t i = 0; i < section_.slots.size(); ++i) {
    const Slot& slot = section_.slots[i];
    const auto before = section_.slots.begin() + static_cast<std::ptrdiff_t>(i);
    const bool repeated =
        std::any_of(section_.slots.begin(), before, [&](const Slot& earlier) { return earlier.column == slot.column; });
    slots_.push_back({slot.map >= 0 ? StorageClass::kText : slot.type.storage(), repeated, traits.reads_slot[i]});
    if (!repeated) columns_.push_back(slot.column);
  }
  heads_ = traits.head_filters;
}

namespace {

/// A vector's values, which out->storage owns from now on.
template <class V>
auto* Keep(V values, TabletEncoding* out) {
  const auto kept = std::make_shared<V>(std::move(values));
  out->storage.emplace_back(kept, reinterpret_cast<uint8_t*>(kept->data()));
  return kept->data();
}

/// The identifiers of a chunk's entries and a 0, which out->storage owns.
Result<const int64_t*> InternDictionary(const Chunk& chunk, const LoopRunner& loop, StringPool* strings,
                                        TabletEncoding* out) {
  const uint64_t begin = chunk.entry_offsets[0];
  const DictionaryEntries entries{{chunk.entry_offsets, size_t{chunk.entries} + 1},
                                  {chunk.entry_bytes + begin, chunk.entry_offsets[chunk.entries] - begin}};
  const bool is_dictionary = chunk.encoding == Encoding::kDictionary;
  KnownDictionaries::Ids ids = is_dictionary ? strings->dictionaries().Find(entries) : nullptr;
  if (ids == nullptr) {
    auto made = std::make_shared<std::vector<int64_t>>(size_t{chunk.entries} + 1);
    TESSERA_TRY(ForEntries(chunk.entries, loop, [&](uint32_t first, uint32_t end) {
      InternEntries(chunk, first, end, strings, made->data() + first);
      return Status::Ok();
    }));
    ids = std::move(made);
    if (is_dictionary) strings->dictionaries().Keep(entries, ids);
  }
  // (What shares the storage does not write to it.)
  out->storage.emplace_back(ids, reinterpret_cast<uint8_t*>(const_cast<int64_t*>(ids->data())));
  return ids->data();
}

/// The slot becomes one of codes that a map gives the values of.
void UseParts(CodedParts parts, SlotEncoding* b, TabletEncoding* out) {
  b->decode = Decode::kMap;
  b->width = 1;
  b->made_bytes = parts.codes.size();
  b->null_bytes = nullptr;
  b->has_null_code = parts.has_nulls;
  b->null_code = CodedParts::kNullCode;
  // As many values as there may be codes, none of which is out of the range of the others.
  const int64_t other = parts.ids.empty() ? 0 : parts.ids.back();
  UninitializedVector<int64_t> map(parts.ids.begin(), parts.ids.end());
  map.resize(CodedParts::kNullCode + 1, other);
  b->map_entries = map.size();
  b->map = Keep(std::move(map), out);
  b->codes = Keep(std::move(parts.codes), out);
}

}  // namespace

/// Fills a slot from its chunk. Text that is read as values also gets a map: to identifiers of the pool, or to the
/// values of the slot's dictionary section.
namespace {

/// Entries have the numbers from `first` on in place of identifiers.
void HandOnEntries(const Chunk& chunk, int64_t first, bool on_host, SlotEncoding* b) {
  b->base = static_cast<uint64_t>(first);
  b->base_high = 0;
  const bool plain = chunk.encoding == Encoding::kPlain;
  if (plain && on_host) {
    b->texts = TextForm::kLate;
    return;
  }
  b->decode = Decode::kFrame;
  b->row_codes = plain;
  if (plain) b->width = 4;
}

/// How codes of what is no text become values.
void DecodeNumbers(const Chunk& chunk, bool leave_packed, SlotEncoding* b) {
  const bool single = chunk.type.id == TypeId::kReal, floats = chunk.type.IsFloat();
  if (chunk.width == 0) {
    b->decode = Decode::kConstant;
    if (floats) {
      b->base = std::bit_cast<uint64_t>(single ? static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(b->base)))
                                               : FromOrderedFloat(b->base));
    }
  } else {
    b->decode = single ? Decode::kReal : floats ? Decode::kFloat : Decode::kFrame;
    // (Of no slot that a host reads: it has the codes in memory.)
    b->row_codes = chunk.codes_are_rows && leave_packed;
  }
}

/// A slot with one value needs no map.
void TakeOnlyEntry(SlotEncoding* b) {
  b->base = static_cast<uint64_t>(b->map[0]);
  b->base_high = 0;
  b->all_null = b->map_null != nullptr && b->map_null[0] != 0;
  b->map = nullptr;
  b->map_null = nullptr;
  b->map_entries = 0;
}

}  // namespace

Status SectionEncoder::EncodeSlot(size_t number, const TabletEncoding* like, const LoopRunner& loop,
                                  TabletEncoding* out) const {
  const Slot& slot = section_.slots[number];
  const Chunk& chunk = *out->chunks[number];
  SlotEncoding* b = &out->slots[number];
  b->codes = chunk.codes;
  b->width = chunk.width;
  b->wide = IsWide(chunk.type);
  b->null_bytes = chunk.null_bytes;
  b->all_null = chunk.null_count == chunk.rows;
  b->base = static_cast<uint64_t>(Low64(chunk.base));
  b->base_high = High64(chunk.base);
  if (chunk.width != 0 && chunk.null_count > 0 && chunk.null_bytes == nullptr) {
    b->has_null_code = true;
    b->null_code = chunk.width == 16 ? static_cast<uint64_t>(Low64(chunk.null_code_wide)) : chunk.null_code;
    b->null_code_high = chunk.width == 16 ? High64(chunk.null_code_wide) : 0;
  }
  if (chunk.type.storage() != StorageClass::kText) {
    DecodeNumbers(chunk, leave_packed_, b);
    return Status::Ok();
  }
  b->decode = chunk.encoding == Encoding::kConstant ? Decode::kConstant
              : chunk.encoding == Encoding::kPlain  ? Decode::kMapRow
                                                    : Decode::kMap;
  if (!slots_[number].value || b->all_null) return Status::Ok();
  if (late_ != nullptr && (*handed_on_)[number] && chunk.entries >= LateTexts::kLeastEntries) {
    HandOnEntries(chunk, late_->Add(out->chunks[number]), lazy_, b);
    return Status::Ok();
  }
  if (lazy_ && chunk.entries > kLazyEntries) {
    const bool differ = uint64_t{chunk.entries} * 2 >= chunk.rows;
    // (An entry of many rows, all of which are kept, gets its identifier once in a map.)
    const bool emitted = uses_.emitted[number] && (chunk.encoding == Encoding::kPlain || drops_rows_);
    if (slot.map < 0 && (uses_.slots[number] || emitted)) b->texts = TextForm::kEntries;
    if (slot.map >= 0 && differ && !uses_.loops) b->texts = TextForm::kComputed;
    if (b->texts != TextForm::kMap) return Status::Ok();
  }
  // (Where a tablet before has too many parts, so do others.)
  const bool may_be_coded =
      like == nullptr || like->chunks[number]->encoding != Encoding::kPlain || like->slots[number].made_bytes > 0;
  if (slot.map >= 0 && !lazy_ && may_be_coded) {
    TESSERA_ASSIGN(std::optional<CodedParts> parts, CodeParts(program_, slot.map, chunk, strings_, loop));
    if (parts.has_value()) {
      UseParts(std::move(*parts), b, out);
      return Status::Ok();
    }
  }
  // One entry more than there are codes, because a NULL code may index it.
  b->map_entries = uint64_t{chunk.entries} + 1;
  if (like != nullptr && like->slots[number].map != nullptr && SameDictionary(*like->chunks[number], chunk)) {
    b->map = like->slots[number].map;
    b->map_null = like->slots[number].map_null;
    ShareStorage(b->map, *like, out);
    if (b->map_null != nullptr) ShareStorage(b->map_null, *like, out);
    return Status::Ok();
  }
  if (slot.map >= 0) {
    TESSERA_ASSIGN(DictionaryMap made, MapDictionary(program_, slot.map, chunk, strings_, interpreter_, loop));
    made.values.push_back(0);
    b->map = Keep(std::move(made.values), out);
    if (std::find(made.null.begin(), made.null.end(), uint8_t{1}) != made.null.end()) {
      made.null.push_back(0);
      b->map_null = Keep(std::move(made.null), out);
    }
  } else if (lazy_ && chunk.entries > kLazyEntries) {
    b->map = Keep(std::vector<int64_t>(b->map_entries), out);
    b->texts = TextForm::kLazyMap;
  } else {
    TESSERA_ASSIGN(b->map, InternDictionary(chunk, loop, strings_, out));
  }
  if (b->decode == Decode::kConstant) TakeOnlyEntry(b);
  return Status::Ok();
}

Status SectionEncoder::EncodePredicates(const TabletEncoding* like, const LoopRunner& loop, TabletEncoding* out) const {
  out->predicates.resize(section_.predicates.size());
  for (size_t i = 0; i < section_.predicates.size(); ++i) {
    const Predicate& p = section_.predicates[i];
    const size_t slot = static_cast<size_t>(p.slot);
    const Chunk& chunk = *out->chunks[slot];
    if (like != nullptr && chunk.type.storage() == StorageClass::kText && EncodesAlike(*like->chunks[slot], chunk) &&
        !like->predicates[i].by_row) {
      out->predicates[i] = like->predicates[i];
      if (out->predicates[i].set != nullptr) ShareStorage(out->predicates[i].set, *like, out);
      continue;
    }
    PredicateEncoder encoder(program_, chunk, strings_, interpreter_, key_ranges_, loop, out);
    if (IsLeftToDevice(chunk) && chunk.text_bytes <= most_text_bytes_ &&
        std::find(on_device_.begin(), on_device_.end(), i) != on_device_.end()) {
      const bool known = like != nullptr && like->predicates[i].on_device;
      TESSERA_ASSIGN(out->predicates[i], encoder.OnDevice(p, known ? &like->predicates[i].share : nullptr));
      continue;
    }
    TESSERA_ASSIGN(out->predicates[i], encoder.Encode(p));
  }
  out->skip = LeavesNone(*out);
  return Status::Ok();
}

bool SectionEncoder::LeavesNone(const TabletEncoding& encoded) const {
  return std::any_of(heads_.begin(), heads_.end(), [&](size_t i) { return encoded.predicates[i].kind == Kind::kNone; });
}

Status SectionEncoder::EncodeKeyRanges(TabletEncoding* encoded) const {
  for (size_t i = 0; i < section_.predicates.size(); ++i) {
    const Predicate& p = section_.predicates[i];
    if (p.kind != Predicate::Kind::kKeyRange) continue;
    const Chunk& chunk = *encoded->chunks[static_cast<size_t>(p.slot)];
    TESSERA_ASSIGN(encoded->predicates[i],
                   PredicateEncoder(program_, chunk, strings_, interpreter_, key_ranges_, {}, encoded).Encode(p));
  }
  encoded->skip = LeavesNone(*encoded);
  return Status::Ok();
}

Result<bool> SectionEncoder::RangesLeaveNone(const Tablet& tablet) const {
  for (const size_t i : heads_) {
    const Predicate& p = section_.predicates[i];
    const size_t slot = static_cast<size_t>(p.slot);
    TESSERA_ASSIGN(const ChunkPointer chunk, tablet.Describe(section_.slots[slot].column));
    if (chunk->type.storage() != slots_[slot].storage) return false;  // an error, of Encode
    PredicateEncoder encoder(program_, *chunk, strings_, interpreter_, key_ranges_, {}, nullptr);
    TESSERA_ASSIGN(const bool none, encoder.RangeLeavesNone(p));
    if (none) return true;
  }
  return false;
}

uint64_t SectionEncoder::Expect(const Tablet& tablet, bool again) const {
  if (!again && tablet.WasRead(columns_)) return 0;
  const Result<bool> none = RangesLeaveNone(tablet);
  return none.ok() && !*none && !columns_.empty() ? tablet.Expect(columns_, again) : 0;
}

void TabletEncoding::Clear() {
  rows = 0;
  skip = false;
  slots.clear();
  predicates.clear();
  chunks.clear();
  tile_codes.clear();
  encoded_bytes = decoded_bytes = 0;
  storage.clear();
}

Result<TabletEncoding> SectionEncoder::Encode(const Tablet& tablet, const TabletEncoding* like, const LoopRunner& loop,
                                              TabletEncoding spare) const {
  const Section& s = section_;
  TabletEncoding out = std::move(spare);
  out.Clear();
  out.rows = tablet.rows();
  // A tablet that is skipped is not read, or not more of it than it takes to know that.
  TESSERA_ASSIGN(out.skip, RangesLeaveNone(tablet));
  if (out.skip) return out;
  out.chunks.resize(s.slots.size());
  const auto read = [&](size_t slot) -> Status {
    if (out.chunks[slot] != nullptr) return Status::Ok();
    TESSERA_ASSIGN(ChunkPointer chunk, tablet.PackedChunk(s.slots[slot].column));
    if (chunk->type.storage() != slots_[slot].storage)
      return {ErrorCode::kCorrupt, "a chunk of " + tablet.path() + " has another type than the catalog says"};
    if (!slots_[slot].repeated) out.encoded_bytes += chunk->encoded_bytes;
    out.chunks[slot] = std::move(chunk);
    return Status::Ok();
  };
  for (const Predicate& p : s.predicates) TESSERA_TRY(read(static_cast<size_t>(p.slot)));
  // Lists of numbers test wide codes row by row. Everything else about a predicate is known without the codes.
  for (const Predicate& p : s.predicates) {
    const auto slot = static_cast<size_t>(p.slot);
    const Chunk& chunk = *out.chunks[slot];
    if (p.kind == Predicate::Kind::kIn && chunk.width > kWidestListed && chunk.type.storage() != StorageClass::kText)
      TESSERA_TRY(Unpack(tablet, slot, &out));
  }
  TESSERA_TRY(EncodePredicates(like, loop, &out));
  if (out.skip) return out;
  for (size_t i = 0; i < s.slots.size(); ++i) {
    TESSERA_TRY(read(i));
    if (!leave_packed_) TESSERA_TRY(UnpackOrRead(tablet, i, &out));
  }
  TESSERA_TRY(EncodeSlots(like, loop, &out));
  return out;
}

Status SectionEncoder::Unpack(const Tablet& tablet, size_t slot, TabletEncoding* out) const {
  if (out->chunks[slot]->width == 0 || out->chunks[slot]->codes != nullptr) return Status::Ok();
  TESSERA_ASSIGN(out->chunks[slot], tablet.Chunk(section_.slots[slot].column));
  if (!slots_[slot].repeated) out->decoded_bytes += out->chunks[slot]->codes_bytes;
  return Status::Ok();
}

Status SectionEncoder::UnpackOrRead(const Tablet& tablet, size_t slot, TabletEncoding* out) const {
  if (!by_tiles_ || out->chunks[slot]->width == 0 || out->chunks[slot]->codes != nullptr)
    return Unpack(tablet, slot, out);
  const int column = section_.slots[slot].column;
  out->tile_codes.resize(section_.slots.size());
  for (size_t earlier = 0; slots_[slot].repeated && earlier < slot; ++earlier) {
    if (section_.slots[earlier].column != column) continue;
    out->chunks[slot] = out->chunks[earlier];
    out->tile_codes[slot] = out->tile_codes[earlier];
    return Status::Ok();
  }
  TESSERA_ASSIGN(const ChunkPointer chunk, tablet.ChunkForTiles(column));
  if (chunk->codes == nullptr) {
    std::unique_ptr<const PackedReader> reader = OpenPackedCodes(*chunk, tablet.AreCodesChecked(column));
    if (reader == nullptr) return Unpack(tablet, slot, out);
    if (chunk->has_nulls) tablet.NoteCodesChecked(column);  // all have been read
    out->tile_codes[slot] = std::make_shared<const TileCodes>(std::move(reader), tablet, column);
    return Status::Ok();
  }
  out->chunks[slot] = chunk;
  out->decoded_bytes += chunk->codes_bytes;
  return Status::Ok();
}

Result<TabletEncoding> SectionEncoder::EncodeChunks(uint32_t rows, std::vector<ChunkPointer> chunks,
                                                    const TabletEncoding& like) const {
  TabletEncoding out;
  out.rows = rows;
  out.chunks = std::move(chunks);
  TESSERA_TRY(EncodePredicates(&like, {}, &out));
  if (!out.skip) TESSERA_TRY(EncodeSlots(&like, {}, &out));
  return out;
}

Status SectionEncoder::EncodeSlots(const TabletEncoding* like, const LoopRunner& loop, TabletEncoding* out) const {
  out->slots.resize(section_.slots.size());
  for (size_t i = 0; i < section_.slots.size(); ++i) TESSERA_TRY(EncodeSlot(i, like, loop, out));
  return Status::Ok();
}

}  // namespace tessera::vm
