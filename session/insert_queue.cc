#include "session/insert_queue.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/exception_status.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/catalog/table_info.h"
#include "tablet/database.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"

namespace tessera {
namespace {

constexpr std::chrono::milliseconds kCancelInterval{20};
/// Of a group: a record of the commit log has room for some thousand short rows.
constexpr size_t kMostRowsOfGroup = 4 * InsertQueue::kMostRows;

/// Whether an error came before the commit, and may be that of one row.
bool IsOfOne(const Status& status) {
  return !status.ok() && (status.code() == ErrorCode::kConstraint || status.code() == ErrorCode::kCancelled);
}

}  // namespace

std::vector<InsertQueue::Entry*> InsertQueue::TakeGroup(Line* line, Entry* own) {
  std::vector<Entry*> group{own};
  size_t rows = own->insert->rows->rows;
  for (Entry* const entry : line->waiting) {
    const Insert& insert = *entry->insert;
    if (entry == own || insert.table != own->insert->table || rows + insert.rows->rows > kMostRowsOfGroup) continue;
    rows += insert.rows->rows;
    group.push_back(entry);
  }
  for (Entry* const entry : group) entry->state = State::kTaken;
  std::erase_if(line->waiting, [](const Entry* entry) { return entry->state == State::kTaken; });
  return group;
}

Status InsertQueue::Commit(const std::vector<Entry*>& group, const TableInfo* table, TableWriter* writer) {
  bool any = false;
  for (Entry* const entry : group) {
    const Insert& insert = *entry->insert;
    // (The snapshot of a statement is older than the lock.)
    entry->fits =
        table != nullptr && table->id == insert.table_id && CheckUnchanged(*insert.schema, table->schema).ok();
    any |= entry->fits;
    if (entry->fits) TESSERA_TRY(writer->Append(*insert.rows, 1));
  }
  return any ? writer->Commit() : Status();
}

void InsertQueue::EndWaiting(Line* line, const Status& status) {
  const auto now = std::chrono::steady_clock::now();
  for (Entry* const entry : line->waiting) {
    if (now - entry->begin < entry->insert->patience) continue;
    entry->state = State::kDone;
    entry->status = status;
  }
  std::erase_if(line->waiting, [](const Entry* entry) { return entry->state == State::kDone; });
}

void InsertQueue::Lead(Line* line, Entry* own, std::unique_lock<std::mutex>* lock) {
  const Insert& insert = *own->insert;
  std::unique_ptr<TableWriter> writer;
  std::shared_ptr<const TableInfo> table;
  lock->unlock();
  Status status = Caught([&]() -> Status {
    TESSERA_ASSIGN(writer, insert.database->Write(insert.table));
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, insert.database->Read());
    table = now->Find(insert.table);
    return {};
  });
  lock->lock();
  if (!status.ok()) {
    own->state = State::kDone;
    own->status = status;
    if (status.code() == ErrorCode::kBusy) EndWaiting(line, status);
    return;
  }
  // From here on no one leaves before it is told: nothing may fail that is not caught.
  const std::vector<Entry*> group = TakeGroup(line, own);
  lock->unlock();
  status = Caught([&] { return Commit(group, table.get(), writer.get()); });
  writer.reset();  // and with it the writer lock
  std::string warning;
  (void)Caught([&] {
    warning = insert.database->TakeWarning();
    return Status();
  });
  lock->lock();
  for (Entry* const entry : group) {
    const bool again = !entry->fits || (group.size() > 1 && IsOfOne(status));
    entry->state = again ? State::kAlone : State::kDone;
    entry->status = status;
    if (!warning.empty()) (void)Caught([&] { return entry->warning = warning, Status(); });
  }
}

Result<bool> InsertQueue::Store(const Insert& insert, std::string* warning) {
  Entry own;
  own.insert = &insert;
  std::unique_lock lock(mutex_);
  Line& line = lines_[insert.database->directory()];
  line.waiting.push_back(&own);
  while (own.state == State::kWaiting) {
    if (!line.has_leader) {
      line.has_leader = true;
      const Status led = Caught([&] { return Lead(&line, &own, &lock), Status(); });
      line.has_leader = false;
      changed_.notify_all();
      if (led.ok()) break;
      own.state = State::kDone;
      own.status = led;
    } else {
      changed_.wait_for(lock, kCancelInterval);
      if (own.state == State::kWaiting && *insert.cancel) {
        own.state = State::kDone;
        own.status = Cancelled();
      }
    }
  }
  std::erase(line.waiting, &own);
  changed_.wait(lock, [&] { return own.state != State::kTaken; });
  if (own.state == State::kAlone) return false;
  TESSERA_TRY(own.status);
  warning->swap(own.warning);
  return true;
}

}  // namespace tessera
