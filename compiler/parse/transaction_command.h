// Statements that begin, end and divide transactions, in the words of PostgreSQL and of SQLite, whose BEGIN IMMEDIATE the
// grammar does not take.
//
// Start at: ReadTransactionCommand. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

/// Those of the standard. Transactions are of two kinds: SERIALIZABLE, and snapshot isolation for the others.
enum class IsolationLevel : uint8_t { kReadUncommitted, kReadCommitted, kRepeatableRead, kSerializable };

struct TransactionCommand {
  enum class Kind : uint8_t {
    kNone,  ///< another statement
    kBegin,
    kCommit,
    kRollback,
    kSavepoint,
    kRelease,
    kRollbackTo,
    kSetModes,         ///< SET TRANSACTION
    kSetSessionModes,  ///< SET SESSION CHARACTERISTICS AS TRANSACTION
  };
  Kind kind = Kind::kNone;
  bool reads_only = false;                  ///< READ ONLY
  std::optional<IsolationLevel> isolation;  ///< nothing: it is not said
  bool locks_now = false;                   ///< BEGIN IMMEDIATE: the writer lock is taken at once
  bool chains = false;                      ///< AND CHAIN: another one begins at once
  std::string savepoint;                    ///< its name, as the parser folds names
};

/// What `sql`, one statement, is. Errors: it begins as such a statement and goes on otherwise; kUnsupported, for the two
/// phases of a commit (PREPARE TRANSACTION).
Result<TransactionCommand> ReadTransactionCommand(std::string_view sql);

}  // namespace tessera
