// Messages as bytes: one field after another. Every length is checked when they are read. Private to mpi/.
//
// A message's fields are described once, as `template <class A> void Fields(A& a, M& message)`, which calls a.Number,
// a.Text, a.Vector, a.Packed or List for each of them. A WireWriter appends them to bytes, a WireReader sets them from bytes, so
// the two cannot disagree. messages.h has the messages; PROTOCOL.md lists them.
//
// Start at: WriteMessage, ReadMessage. Plain data; no MPI.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "mpi/packed_numbers.h"
#include "vm/rows/string_pool.h"

namespace tessera {

class WireWriter {
 public:
  static constexpr bool kReads = false;
  /// `framed`: for Messenger::Send, which puts the size in front. `pool`: for what is long; or nullptr.
  explicit WireWriter(bool framed = false, ThreadPool* pool = nullptr)
      : bytes_(framed ? sizeof(uint64_t) : 0, 0), framed_(framed), pool_(pool) {}

  /// A number, an enumerator or a struct of them, as it lies in memory.
  template <class T>
  void Number(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void Text(std::string_view v) {
    Number<uint64_t>(v.size());
    bytes_ += v;
  }
  /// Many numbers at once: their count, then all of them.
  template <class T>
  void Vector(const std::vector<T>& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    Number<uint64_t>(v.size());
    bytes_.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
  }
  /// The same, packed. `null`: of numbers that need not arrive; or empty.
  template <class T>
  void Packed(const std::vector<T>& v, const std::vector<uint8_t>& null, uint64_t) {
    const std::span<const T> values(v);
    const std::span<const uint8_t> left_out(null.data(), null.size() == v.size() ? v.size() : 0);
    const NumberPacking packing = PackingOf(values, left_out, pool_);
    Number<uint64_t>(v.size());
    Number(packing.least);
    Number(packing.width);
    const size_t at = bytes_.size();
    bytes_.resize(at + v.size() * packing.width);
    PackNumbers(values, left_out, packing, bytes_.data() + at, pool_);
  }
  /// The count of a list whose items follow.
  template <class T>
  void Length(const std::vector<T>& v, size_t) {
    Number<uint64_t>(v.size());
  }
  /// What a reader takes for granted of the fields so far.
  void Require(bool) {}
  bool failed() const { return false; }
  void Reserve(size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  std::string Take() {
    const uint64_t size = bytes_.size() - sizeof size;
    if (framed_) memcpy(bytes_.data(), &size, sizeof size);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  const bool framed_;
  ThreadPool* const pool_;
};

/// After the first overrun, or field that is not as required, everything reads as zero and failed() stays true.
class WireReader {
 public:
  static constexpr bool kReads = true;
  explicit WireReader(std::string_view bytes, ThreadPool* pool = nullptr) : rest_(bytes), pool_(pool) {}

  template <class T>
  void Number(T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    v = T{};
    if (rest_.size() < sizeof v) return Fail();
    if constexpr (std::is_same_v<T, bool>) {
      v = rest_[0] != 0;  // any other byte than 0 or 1 would be no valid bool
    } else {
      memcpy(&v, rest_.data(), sizeof v);
    }
    rest_.remove_prefix(sizeof v);
  }
  /// A view of the message's bytes, which must outlive it.
  void Text(std::string_view& v) {
    v = {};
    uint64_t n = 0;
    Number(n);
    if (n > rest_.size()) return Fail();
    v = rest_.substr(0, n);
    rest_.remove_prefix(n);
  }
  void Text(std::string& v) {
    std::string_view view;
    Text(view);
    v = view;
  }
  template <class T>
  void Vector(std::vector<T>& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    v.clear();
    uint64_t n = 0;
    Number(n);
    if (n > rest_.size() / sizeof(T)) return Fail();
    v.resize(n);
    if (n > 0) memcpy(v.data(), rest_.data(), n * sizeof(T));
    rest_.remove_prefix(n * sizeof(T));
  }
  /// `most`: a reader takes no more numbers, because they may take eight times the bytes of the message.
  template <class T>
  void Packed(std::vector<T>& v, const std::vector<uint8_t>&, uint64_t most) {
    v.clear();
    uint64_t n = 0;
    NumberPacking packing;
    Number(n);
    Number(packing.least);
    Number(packing.width);
    if (!IsWidth(packing.width) || n > most || n > rest_.size() / packing.width) return Fail();
    v.resize(n);
    UnpackNumbers(rest_.data(), packing, std::span<T>(v), pool_);
    rest_.remove_prefix(n * packing.width);
  }
  /// Sizes the list for its items, which follow and take at least `least` bytes each: a count that does not fit the
  /// rest of the message is an error, and nothing is allocated for it.
  template <class T>
  void Length(std::vector<T>& v, size_t least) {
    v.clear();
    uint64_t n = 0;
    Number(n);
    if (n > rest_.size() / least) return Fail();
    v.resize(n);
  }
  /// Without `good` the message is damaged.
  void Require(bool good) {
    if (!good) Fail();
  }
  bool failed() const { return failed_; }
  /// OK if nothing was missing and nothing is left.
  Status End() const {
    if (!failed_ && rest_.empty()) return Status::Ok();
    return {ErrorCode::kCorrupt, "a message of another rank is damaged"};
  }

 private:
  void Fail() {
    failed_ = true;
    rest_ = {};
  }

  std::string_view rest_;
  bool failed_ = false;
  ThreadPool* const pool_;
};

/// Appends the message's fields. (Fields takes a message that a reader may set; a writer does not change it.)
template <class M>
void Append(const M& message, WireWriter* out) {
  Fields(*out, const_cast<M&>(message));
}
/// The bytes of a message; `framed` as for WireWriter.
template <class M>
std::string WriteMessage(const M& message, bool framed = false) {
  WireWriter out(framed);
  Append(message, &out);
  return out.Take();
}
/// The items of a list. None is shorter than one whose texts and lists are empty.
template <class A, class T>
void List(A& a, std::vector<T>& v) {
  static const size_t least = WriteMessage(T()).size();
  a.Length(v, least);
  for (T& item : v) {
    if (!a.failed()) Fields(a, item);
  }
}

/// Errors: kCorrupt, the bytes are not a message of this kind.
template <class M>
Status ReadMessage(std::string_view bytes, M* message) {
  WireReader in(bytes);
  Fields(in, *message);
  return in.End();
}

}  // namespace tessera
