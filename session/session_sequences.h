// The sequences as a session sees them.
//
// A value is taken from the catalog in a commit of its own before it is used, under the writer lock, so that no two processes
// get the same; within a transaction, which has that lock, at the end of the statement and as a part of the transaction.
//
// Start at: SessionSequences::Next, Store. The thread of the session, but Next() any.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/status.h"
#include "compiler/query/sequence_source.h"

namespace tessera {

struct SessionState;

class SessionSequences final : public SequenceSource {
 public:
  explicit SessionSequences(SessionState* state) : state_(*state) {}

  Result<Sequences> All() override;
  Result<int64_t> Next(const std::string& name) override;
  Result<int64_t> Current(const std::string& name) override;
  Result<int64_t> Last() override;
  Status Set(const std::string& name, int64_t value, bool was_given) override;

  /// At the end of a statement: what it has taken within a transaction goes to the catalog.
  Status Store();
  /// ... or, after an error, does not.
  void Forget() { pending_.clear(); }

 private:
  /// Calls f(sequence) with the one of that name, and keeps what it becomes.
  template <class F>
  Status Change(const std::string& name, F f);

  /// Its value as the open transaction has changed it.
  void TakeValue(Sequence* sequence) const;

  SessionState& state_;
  std::mutex mutex_;
  std::map<std::string, Sequence> pending_;  ///< as the open transaction has changed them
  std::map<std::string, int64_t> current_;
  std::string last_;  ///< "": none
};

}  // namespace tessera
