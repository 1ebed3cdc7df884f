// SQL types and Arrow's: the table of capi/README.md.
//
// Start at: ExportColumns, SqlTypeOf. Pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "capi/arrow.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"

namespace tessera {

/// A struct type with a field for each column. *out is released by its new owner.
void ExportColumns(std::span<const vm::ResultColumn> columns, ArrowSchema* out);

/// The SQL type of the values of an Arrow field. Errors: kUnsupported, there is none, with the field's name.
Result<SqlType> SqlTypeOf(const ArrowSchema& field);

/// How many of the unit of a timestamp, time or duration make a second; `letter`: 's', 'm', 'u' or 'n', as in its format.
int64_t UnitsPerSecond(char letter);

/// Whether the field is an extension type of that name.
bool IsExtension(const ArrowSchema& field, std::string_view name);

/// Releases what a C struct of Arrow owns, if it owns anything.
template <class T>
void ReleaseArrow(T* owned) {
  if (owned->release != nullptr) owned->release(owned);
}

/// An owner of such a struct.
template <class T>
class OwnedArrow {
 public:
  OwnedArrow() = default;
  /// Takes it from *from.
  explicit OwnedArrow(T* from) : value_(*from) { from->release = nullptr; }
  ~OwnedArrow() { ReleaseArrow(&value_); }
  OwnedArrow(OwnedArrow&& other) noexcept : value_(other.value_) { other.value_.release = nullptr; }
  OwnedArrow& operator=(OwnedArrow&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  T* get() { return &value_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  bool has_value() const { return value_.release != nullptr; }
  /// Gives it to *to.
  void MoveTo(T* to) {
    *to = value_;
    value_.release = nullptr;
  }

 private:
  T value_ = {};
};

}  // namespace tessera
