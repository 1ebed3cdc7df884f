// Programs as bytes: Serialize and Parse share one description of the fields, so that they cannot disagree. Layout: the
// magic word, the format version, the fields of Program in order (integers little endian; a list is its count and its
// items), and the XXH3-64 checksum of all of that.

#include "vm/program/program.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tessera::vm {
namespace {

constexpr uint32_t kMagic = 0x50534554;  // "TESP"
constexpr uint32_t kVersion = 12;

static_assert(std::endian::native == std::endian::little, "programs travel little endian");

/// Appends fields to a byte string.
class Writer {
 public:
  static constexpr bool kReads = false;
  template <class T>
  void Number(T& v) {
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void Text(std::string& v) {
    Count(v.size());
    out += v;
  }
  template <class T>
  size_t Length(std::vector<T>& v) {
    Count(v.size());
    return v.size();
  }
  std::string out;

 private:
  void Count(size_t n) {
    uint32_t count = static_cast<uint32_t>(n);
    Number(count);
  }
};

/// Reads fields back. After the first overrun all fields read as zero and `failed` stays set.
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : rest(bytes) {}
  template <class T>
  void Number(T& v) {
    if (rest.size() < sizeof v) return Fail(v);
    if constexpr (std::is_same_v<T, bool>) {
      v = rest[0] != 0;
      failed |= static_cast<uint8_t>(rest[0]) > 1;
    } else {
      memcpy(&v, rest.data(), sizeof v);
    }
    rest.remove_prefix(sizeof v);
  }
  void Text(std::string& v) {
    uint32_t n = 0;
    Number(n);
    if (n > rest.size()) return Fail(n);
    v.assign(rest.substr(0, n));
    rest.remove_prefix(n);
  }
  template <class T>
  size_t Length(std::vector<T>& v) {
    uint32_t n = 0;
    Number(n);
    // Every item takes at least one byte, so a count beyond the rest is wrong; do not allocate for it.
    if (n > rest.size()) Fail(n);
    if (!failed) v.resize(n);
    return v.size();
  }
  std::string_view rest;
  bool failed = false;

 private:
  template <class T>
  void Fail(T& v) {
    v = T{};
    rest = {};
    failed = true;
  }
};

template <class A>
void Fields(A& a, int32_t& v) {
  a.Number(v);
}
template <class A>
void Fields(A& a, SqlType& t) {
  a.Number(t.id);
  a.Number(t.precision);
  a.Number(t.scale);
  a.Number(t.length);
}
template <class A>
void Fields(A& a, Value& v) {
  Fields(a, v.type);
  a.Number(v.null);
  a.Number(v.i64);
  a.Number(v.f64);
  a.Number(v.wide);
  a.Text(v.text);
}
template <class A>
void Fields(A& a, Instruction& i) {
  a.Number(i.op);
  a.Number(i.p1);
  a.Number(i.p2);
  a.Number(i.p3);
  a.Number(i.p4);
}
template <class A, class T>
void List(A& a, std::vector<T>& v) {
  size_t n = a.Length(v);
  for (size_t i = 0; i < n; ++i) Fields(a, v[i]);
}
template <class A>
void Fields(A& a, Slot& s) {
  a.Number(s.column);
  Fields(a, s.type);
  a.Number(s.map);
}
template <class A>
void Fields(A& a, Predicate& p) {
  a.Number(p.kind);
  a.Number(p.negated);
  a.Number(p.low_inclusive);
  a.Number(p.high_inclusive);
  a.Number(p.slot);
  a.Number(p.low);
  a.Number(p.high);
  a.Number(p.map);
  a.Number(p.join);
  List(a, p.list);
}
template <class A>
void Fields(A& a, AggregateSpec& s) {
  a.Number(s.op);
  Fields(a, s.type);
}
template <class A>
void Fields(A& a, SortKey& k) {
  a.Number(k.column);
  a.Number(k.descending);
  a.Number(k.nulls_first);
}
template <class A>
void Fields(A& a, WindowSpec& w) {
  a.Number(w.function);
  a.Number(w.aggregate);
  Fields(a, w.type);
  a.Number(w.partition_keys);
  a.Number(w.order_keys);
  a.Number(w.value);
  a.Number(w.count);
  a.Number(w.number);
  a.Number(w.fallback);
  a.Number(w.ignore_nulls);
  a.Number(w.distinct);
  a.Number(w.fold);
  a.Number(w.fold_constant);
  List(a, w.order);
  a.Number(w.frame.mode);
  a.Number(w.frame.start);
  a.Number(w.frame.end);
  a.Number(w.frame.exclusion);
  a.Number(w.frame.start_offset);
  a.Number(w.frame.end_offset);
  a.Number(w.frame.key);
  a.Number(w.frame.start_column);
  a.Number(w.frame.end_column);
  a.Number(w.frame.varies);
}
template <class A>
void Fields(A& a, TabletSpan& s) {
  a.Number(s.first);
  a.Number(s.end);
}
template <class A>
void Fields(A& a, Section& s) {
  a.Number(s.source_kind);
  a.Number(s.source);
  a.Number(s.source_rows);
  a.Number(s.sink);
  a.Number(s.join);
  List(a, s.slots);
  List(a, s.predicates);
  List(a, s.registers);
  a.Number(s.masks);
  List(a, s.code);
  List(a, s.columns);
  List(a, s.aggregates);
  a.Number(s.keys);
  List(a, s.after.order);
  a.Number(s.after.limit);
  a.Number(s.after.offset);
  a.Number(s.after.append_to);
  a.Number(s.after.repeat);
  a.Number(s.after.fold.kind);
  a.Number(s.after.fold.distinct);
  a.Number(s.after.fold.constant);
  a.Number(s.recursion.first);
  a.Number(s.recursion.distinct);
  a.Number(s.recursion.limit);
  List(a, s.after.windows);
  a.Number(s.placement.by_key);
  a.Number(s.placement.co_located);
  List(a, s.placement.spans);
  a.Text(s.label);
}
template <class A>
void Fields(A& a, JoinSpec& j) {
  a.Number(j.unique);
  a.Number(j.section);
  a.Number(j.strategy);
  a.Number(j.order);
  a.Number(j.selective);
}
template <class A>
void Fields(A& a, TableRef& t) {
  a.Number(t.id);
  a.Text(t.name);
  a.Number(t.runs_of);
  List(a, t.runs);
}
template <class A>
void Fields(A& a, ResultColumn& c) {
  a.Text(c.name);
  Fields(a, c.type);
}
template <class A>
void Fields(A& a, Program& p) {
  List(a, p.constants);
  List(a, p.tables);
  List(a, p.joins);
  List(a, p.sections);
  List(a, p.columns);
}

Status Corrupt(const char* reason) { return {ErrorCode::kCorrupt, std::string("program refused: ") + reason}; }

}  // namespace

std::string Program::Serialize() const {
  Writer w;
  uint32_t magic = kMagic, version = kVersion;
  w.Number(magic);
  w.Number(version);
  Fields(w, const_cast<Program&>(*this));  // one description for both directions; a Writer changes nothing
  uint64_t checksum = XXH3_64bits(w.out.data(), w.out.size());
  w.Number(checksum);
  return std::move(w.out);
}

Result<Program> Program::Parse(std::string_view bytes) {
  if (bytes.size() < 16) return Corrupt("too short");
  std::string_view body = bytes.substr(0, bytes.size() - 8);
  uint64_t checksum;
  memcpy(&checksum, bytes.data() + body.size(), sizeof checksum);
  if (checksum != XXH3_64bits(body.data(), body.size())) return Corrupt("checksum differs");
  Reader r(body);
  uint32_t magic = 0, version = 0;
  r.Number(magic);
  r.Number(version);
  if (magic != kMagic) return Corrupt("not a program");
  if (version != kVersion) return Corrupt("another version of Tessera made it");
  Program p;
  Fields(r, p);
  if (r.failed) return Corrupt("it ends early");
  if (!r.rest.empty()) return Corrupt("bytes after its end");
  return p;
}

}  // namespace tessera::vm
