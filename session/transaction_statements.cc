// BEGIN, COMMIT, ROLLBACK and their kin.

#include "compiler/parse/transaction_words.h"
#include "session/statements.h"

namespace tessera {

Result<bool> RefuseTransaction(SessionState* state, std::string_view sql, ResultWriter* out) {
  const TransactionWords words = TransactionWordsOf(sql);
  std::string& refused = state->refused_transaction;
  if (words.role == TransactionRole::kBegins) {
    if (refused.empty()) refused = words.name;
    return Unsupported(
        words.name + " is not supported: each statement is a transaction of its own", words.position,
        "What follows is refused up to COMMIT or ROLLBACK. Leave these words out; to change a table as a "
        "whole, write CREATE OR REPLACE TABLE t AS SELECT ...");
  }
  if (refused.empty()) return false;
  if (words.role != TransactionRole::kEnds) {
    return Unsupported("not run: it belongs to the transaction that " + refused + " was to begin", -1,
                       "Enter ROLLBACK, then run the statements without " + refused + ": each is kept when it ends.");
  }
  refused.clear();
  TESSERA_TRY(out->Done("ROLLBACK"));  // nothing of it was done, whichever word ended it
  return true;
}

}  // namespace tessera
