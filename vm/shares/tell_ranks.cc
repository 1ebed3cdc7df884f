#include "vm/shares/tell_ranks.h"

namespace tessera::vm {

Result<std::vector<std::string>> TellRanksBytes(Exchange* exchange, const Status& mine, std::string_view bytes) {
  std::string message(1, mine.ok() ? '\0' : '\1');
  message += bytes;
  const std::vector<uint64_t> sizes(static_cast<size_t>(exchange->ranks()), message.size());
  TESSERA_ASSIGN(std::vector<std::string> all, exchange->AllGatherBytes(message, sizes));
  bool failed = false;
  for (std::string& of_rank : all) {
    if (of_rank.size() != message.size()) return Status(ErrorCode::kCorrupt, "what a rank has told is damaged");
    failed = failed || of_rank[0] != '\0';
    of_rank.erase(0, 1);
  }
  if (!failed) return all;
  TESSERA_TRY(exchange->Agree(mine));
  return Status(ErrorCode::kCorrupt, "a rank says that it has failed, and no rank has");
}

}  // namespace tessera::vm
