// Nested arrays, value by value: for the answers of ADBC, which are lists of structs of lists.
//
// Start at: ArrowTree. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/arrow.h"

namespace tessera {

/// A field with its values. A struct has a child for each of its fields, a list has one.
class ArrowTree {
 public:
  ArrowTree(std::string format, std::string name, bool nullable = true, std::vector<ArrowTree> children = {});

  ArrowTree& child(size_t i) { return children_[i]; }
  int64_t length() const { return length_; }

  void AppendNull();
  void AppendText(std::string_view text);
  void AppendText(const std::optional<std::string>& text);
  /// Of any width, as the format says.
  void AppendNumber(int64_t number);
  void AppendBoolean(bool value);
  /// A struct whose fields have been appended, a list whose items have.
  void Close();
  /// A value of a dense union, which its child number `child` has got last.
  void CloseUnion(size_t child);

  /// Both of the whole tree. The array takes the values.
  void ExportSchema(ArrowSchema* out) const;
  void ExportArray(ArrowArray* out);

 private:
  void Note(bool valid);
  bool IsUnion() const { return format_.starts_with("+ud"); }
  size_t Width() const;
  template <class T>
  void AddBytes(std::string* to, T value);

  std::string format_, name_;
  bool nullable_;
  std::vector<ArrowTree> children_;
  int64_t length_ = 0, nulls_ = 0;
  std::string validity_, values_, texts_;
};

/// A stream of one batch: the fields of a struct.
void ExportTree(ArrowTree tree, ArrowArrayStream* out);

}  // namespace tessera
