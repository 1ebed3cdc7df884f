// Columns with chosen values, for the opcode walk: the forms that a column of a type can be stored in (encodings,
// widths of codes, bases, NULL codes), the values at the edges of each, and random ones between them.
//
// Start at: Form, FormsOf, MakeValues.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "tests/vm/memory_tablet.h"
#include "tests/vm/opcode_values.h"

namespace tessera::test::walk {

using Random = std::mt19937_64;

inline size_t Below(Random& random, size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); }
template <class T>
const T& Pick(Random& random, const std::vector<T>& v) {
  return v[Below(random, v.size())];
}

/// A way to store a column, and the values that fit it (in ordered form; not for TEXT).
struct Form {
  ChunkForm chunk;
  int128_t low = 0, high = 0;
  bool nulls = false;     // some rows are NULL
  bool all_null = false;  // kConstant: every row is
  std::string ToString() const { return chunk.ToString() + (all_null ? " null" : nulls ? " nulls" : ""); }
};

/// Least and greatest value of a type, in ordered form.
std::pair<int128_t, int128_t> RangeOf(const SqlType& t);

/// Values worth testing, in ordered form, of those between low and high.
std::vector<int128_t> EdgesOf(const SqlType& t, int128_t low, int128_t high);

/// A value in ordered form is one that a column can hold: not a bit pattern between infinity and NaN.
bool IsValue(const SqlType& t, int128_t v);

Value ToValue(const SqlType& t, int128_t ordered);

/// Forms of a type; the same list each time.
const std::vector<Form>& FormsOf(const SqlType& t);

/// Strings that texts are made of; strings that are numbers, dates and booleans, and some that nearly are.
const std::vector<std::string>& PlainStrings();
const std::vector<std::string>& NumberStrings();

struct ColumnSpec {
  SqlType type;
  Form form;
  const std::vector<std::string>* strings = nullptr;  // TEXT: from these; nullptr: PlainStrings
  size_t distinct = 0;                                // TEXT: of this many strings; 0: any
  size_t stride = 1;  // rows for which an edge value stays: 1 beside another of n edges, n
};

ColumnVector MakeValues(const ColumnSpec& spec, size_t rows, Random& random);

ColumnVector Integers(const SqlType& type, std::vector<int64_t> values);
Form FrameForm(int width, bool nulls = false);

}  // namespace tessera::test::walk
