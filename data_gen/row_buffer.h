// RowBuffer: text rows in memory, built value by value without a check or an allocation per value.
//
// Not thread-safe: each thread fills its own. Start at: Reserve(), Put().
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace tessera {

class RowBuffer {
 public:
  void Clear() { size_ = 0; }
  std::string_view bytes() const { return {data_.get(), size_}; }

  /// Makes room for `bytes` more. Put() does not check: call this for each row with a bound on its length.
  void Reserve(size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
  }

  /// Appends `text` and then `separator`.
  void Put(std::string_view text, char separator) {
    std::memcpy(data_.get() + size_, text.data(), text.size());
    size_ += text.size();
    Put(separator);
  }

  /// Appends a number, floating point in the shortest form that reads back as the same value, and then `separator`.
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
  void Put(Number value, char separator) {
    char* const begin = data_.get() + size_;
    size_ = static_cast<size_t>(std::to_chars(begin, begin + kLongestNumber, value).ptr - data_.get());
    Put(separator);
  }

  void Put(char c) { data_[size_++] = c; }

 private:
  /// to_chars is given this much room; no float or 64-bit integer needs as much.
  static constexpr size_t kLongestNumber = 32;

  void Grow(size_t bytes) {
    const size_t capacity = 2 * capacity_ + bytes + kLongestNumber;
    auto data = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(data.get(), data_.get(), size_);
    data_ = std::move(data);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace tessera
