// Messages as bytes: fields written one after another and read back with every length checked. Private to mpi/.
//
// Start at: WireWriter, WireReader; PROTOCOL.md lists the messages. Plain data; no MPI.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "vm/string_pool.h"
#include "vm/vm.h"

namespace tessera {

class WireWriter {
 public:
  /// `framed`: for Messenger::Send, which puts the size in front.
  explicit WireWriter(bool framed = false) : bytes_(framed ? sizeof(uint64_t) : 0, 0), framed_(framed) {}

  template <class T>
  void Number(T v) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void Text(std::string_view v) {
    Number<uint64_t>(v.size());
    bytes_ += v;
  }
  template <class T>
  void Vector(const std::vector<T>& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    Number<uint64_t>(v.size());
    bytes_.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
  }
  void Reserve(size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  std::string Take() {
    const uint64_t size = bytes_.size() - sizeof size;
    if (framed_) memcpy(bytes_.data(), &size, sizeof size);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  const bool framed_;
};

/// After the first overrun everything reads as zero and failed() stays true.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Number() {
    static_assert(std::is_trivially_copyable_v<T>);
    if constexpr (std::is_same_v<T, bool>) return Number<uint8_t>() != 0;  // other bytes make no bool
    T v{};
    if (rest_.size() < sizeof v) {
      Fail();
      return v;
    }
    memcpy(&v, rest_.data(), sizeof v);
    rest_.remove_prefix(sizeof v);
    return v;
  }
  std::string_view Text() {
    const auto n = Number<uint64_t>();
    if (n > rest_.size()) {
      Fail();
      return {};
    }
    const std::string_view v = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return v;
  }
  template <class T>
  std::vector<T> Vector() {
    const auto n = Number<uint64_t>();
    if (n > rest_.size() / sizeof(T)) {
      Fail();
      return {};
    }
    std::vector<T> v(n);
    if (n > 0) memcpy(v.data(), rest_.data(), n * sizeof(T));
    rest_.remove_prefix(n * sizeof(T));
    return v;
  }
  /// A count of items of at least `least` bytes each.
  size_t Count(size_t least) {
    const auto n = Number<uint64_t>();
    if (n <= rest_.size() / least) return n;
    Fail();
    return 0;
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
};

void WriteStatus(const Status& status, WireWriter* out);
Status ReadStatus(WireReader* in);

/// Text travels as values: the different ones once, and per row the number of its value in the message.
void WriteShipment(const vm::Shipment& shipment, const vm::StringPool& strings, WireWriter* out);
Result<vm::Shipment> ReadShipment(std::string_view bytes, vm::StringPool* strings);

void WriteStatistics(const vm::RunStatistics& statistics, WireWriter* out);
vm::RunStatistics ReadStatistics(WireReader* in);

}  // namespace tessera
