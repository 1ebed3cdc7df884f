// Kinds of errors.

#include "base/status.h"

#include <algorithm>
#include <iterator>

namespace tessera {
namespace {

struct KindRow {
  ErrorCode code;
  const char* sqlstate;
};
constexpr KindRow kKinds[] = {
#define TESSERA_ERROR_KIND(name, sqlstate, code, what) {ErrorCode::code, sqlstate},
#include "base/error_kinds.def"
};
constexpr bool IsComplete() {
  for (const KindRow& row : kKinds) {
    int letters = 0;
    while (row.sqlstate[letters] != '\0') ++letters;
    if (letters != 5) return false;
  }
  return true;
}
static_assert(IsComplete(), "an SQLSTATE has five letters");

}  // namespace

ErrorKind KindOf(ErrorCode code) {
  const auto row = std::ranges::find(kKinds, code, &KindRow::code);
  return static_cast<ErrorKind>(row - std::begin(kKinds));
}

ErrorCode CodeOf(ErrorKind kind) { return kKinds[static_cast<size_t>(kind)].code; }

const char* SqlStateOf(ErrorKind kind) { return kKinds[static_cast<size_t>(kind)].sqlstate; }

}  // namespace tessera
