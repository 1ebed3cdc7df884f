// Where the values of sequences come from: the session, which keeps what it has given and what currval() says.
//
// Start at: SequenceSource::Next. The thread of the session, but Next() any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/sequence.h"

namespace tessera {

class SequenceSource {
 public:
  virtual ~SequenceSource() = default;
  /// Errors: of reading the catalog.
  virtual Result<Sequences> All() = 0;
  // Errors, of all: there is no such sequence.
  /// A value that is given to no other caller. Errors: it has come to its end; kBusy.
  virtual Result<int64_t> Next(const std::string& name) = 0;
  /// The value that Next() has given this session. Errors: none yet.
  virtual Result<int64_t> Current(const std::string& name) = 0;
  /// The same of any sequence.
  virtual Result<int64_t> Last() = 0;
  /// The next value is `value`, or that after it if it `was_given`. Errors: out of bounds; kBusy.
  virtual Status Set(const std::string& name, int64_t value, bool was_given) = 0;
};

/// A call of nextval or currval that has a value for each row of the statement's query.
struct SequenceCall {
  std::string sequence;
  bool takes_next = false;  ///< nextval
  int position = -1;
};
using SequenceCalls = std::vector<SequenceCall>;

}  // namespace tessera
