// Which statements begin and end a transaction of several statements. There are none of these, so a session refuses what
// was to be in one; and it must know them also in the forms of other engines, which the grammar does not take.
//
// Start at: TransactionWordsOf. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

enum class TransactionRole : uint8_t {
  kNone,    ///< another statement, or one within a transaction: RELEASE, ROLLBACK TO, PREPARE TRANSACTION
  kBegins,  ///< BEGIN, START TRANSACTION, SAVEPOINT, whatever follows
  kEnds,    ///< COMMIT, END, ROLLBACK, ABORT; not with AND CHAIN
};

struct TransactionWords {
  TransactionRole role = TransactionRole::kNone;
  std::string name;  ///< "BEGIN"
  int position = 0;  ///< of its first word
};

/// Of one statement.
TransactionWords TransactionWordsOf(std::string_view sql);

}  // namespace tessera
