#include "session/older_tables.h"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>
#include <utility>

#include "session/same_snapshot.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/load/primary_key.h"

namespace tessera {
namespace {

std::string Named(const TableInfo& table) { return "table \"" + ShownName(table.schema.name) + "\""; }

/// `tables`: of OlderTable, constant or not. nullptr: there is none of that name.
template <class Tables>
auto* FindIn(Tables& tables, std::string_view name) {
  const auto at = std::ranges::find_if(tables, [&](const OlderTable& t) { return t.before->schema.name == name; });
  return at != tables.end() ? &*at : nullptr;
}

/// Whether nothing but rows has changed. (TRUNCATE deletes all rows. VACUUM and ALTER make another table, or other columns.)
bool HasOtherRowsAlone(const OlderTable& table) {
  const TableSchema &before = table.before->schema, &now = table.first->schema;
  const auto same_key = [](const UniqueKey& a, const UniqueKey& b) {
    return a.name == b.name && a.columns == b.columns;
  };
  return table.before->id == table.first->id && CheckUnchanged(before, now).ok() &&
         before.primary_key == now.primary_key && std::ranges::equal(before.unique_keys, now.unique_keys, same_key) &&
         before.cluster_by == now.cluster_by && before.distribute_by == now.distribute_by;
}

/// `now`: the latest state.
Status See(const std::string& directory, const std::shared_ptr<const TableInfo>& now, OlderTable* table) {
  if (table->rows != nullptr && table->rows->version() == now->version) return {};
  TESSERA_ASSIGN(table->rows, OlderRows::See(directory, table->before, *table->first, now));
  return {};
}

/// The same; but a key that exists is one that the statement has not seen.
Status OfUnseenKey(const Status& status, const TableInfo& table) {
  const bool exists = !status.ok() && status.kind() == ErrorKind::kUniqueViolation;
  return exists ? CannotSerialize("a key of " + Named(table)) : status;
}

class OlderWriter final : public TableWriter {
 public:
  OlderWriter(std::shared_ptr<const OlderRows> rows, std::unique_ptr<TableWriter> writer, bool on_conflict)
      : rows_(std::move(rows)), writer_(std::move(writer)), on_conflict_(on_conflict) {}

  Status Append(RowBatch batch, uint64_t first_row) override { return writer_->Append(std::move(batch), first_row); }
  Result<uint64_t> Delete(std::span<const int64_t> rows, std::vector<bool>* fresh) override {
    TESSERA_ASSIGN(const std::vector<int64_t> places, PlacesOf(rows));
    return writer_->Delete(places, fresh);
  }
  Result<uint64_t> DeleteShare(std::span<const int64_t> rows) override {
    TESSERA_ASSIGN(const std::vector<int64_t> places, PlacesOf(rows));
    return writer_->DeleteShare(places);
  }
  Result<uint64_t> DeleteMarked(int64_t first, std::span<const uint64_t> bits) override {
    std::vector<int64_t> rows;
    for (size_t w = 0; w < bits.size(); ++w) {
      for (uint64_t left = bits[w]; left != 0; left &= left - 1)
        rows.push_back(first + static_cast<int64_t>(64 * w) + std::countr_zero(left));
    }
    return Delete(rows, nullptr);
  }
  Status Update(std::span<const int> columns, RowBatch values, std::span<const int64_t> rows,
                uint64_t first_row) override {
    TESSERA_ASSIGN(const std::vector<int64_t> places, PlacesOf(rows));
    return writer_->Update(columns, std::move(values), places, first_row);
  }
  Status Commit() override {
    const Status status = writer_->Commit();
    return on_conflict_ ? OfUnseenKey(status, *rows_->table()) : status;
  }

 private:
  Result<std::vector<int64_t>> PlacesOf(std::span<const int64_t> rows) const {
    std::vector<int64_t> places;
    places.reserve(rows.size());
    for (const int64_t row : rows) {
      const int64_t place = rows_->PlaceOf(row);
      if (place == OlderRows::kChanged) return CannotSerialize("a row of " + Named(*rows_->table()));
      places.push_back(place);
    }
    return places;
  }

  const std::shared_ptr<const OlderRows> rows_;
  const std::unique_ptr<TableWriter> writer_;
  const bool on_conflict_;
};

}  // namespace

Status CannotSerialize(const std::string& changed) {
  return {ErrorKind::kSerializationFailure,
          "could not serialize access: another session has changed " + changed +
              " since this transaction's first statement",
          kTryAgain};
}

const OlderTable* OlderTables::Find(std::string_view table) const { return FindIn(tables, table); }

Result<OlderTables> TablesOfBefore(const std::string& directory, const Snapshot& before, const Snapshot& now) {
  // (A table that was made, dropped or renamed is a change of names that statements are bound by. VACUUM makes another table of
  // the same name.)
  const auto name = [](const auto& table) { return std::string_view(table->schema.name); };
  if (!IsSameBesideTables(before, now) || !std::ranges::equal(before.tables, now.tables, {}, name, name))
    return CannotSerialize("the database");
  OlderTables older{directory, {}};
  for (size_t i = 0; i < before.tables.size(); ++i) {
    if (before.tables[i] != now.tables[i]) older.tables.push_back({before.tables[i], now.tables[i], nullptr});
  }
  return older;
}

Result<std::shared_ptr<const Snapshot>> WithOlder(std::shared_ptr<const Snapshot> now, OlderTables* older) {
  if (older->empty()) return now;
  auto seen = std::make_shared<Snapshot>(*now);
  for (OlderTable& table : older->tables) {
    const auto has_name = [&](const auto& t) { return t->schema.name == table.before->schema.name; };
    const auto at = std::ranges::find_if(seen->tables, has_name);
    if (at == seen->tables.end()) continue;
    if ((*at)->version == table.first->version) {  // the transaction has not changed it
      *at = table.before;
      continue;
    }
    TESSERA_TRY(See(older->directory, *at, &table));
    *at = table.rows->table();
  }
  return std::shared_ptr<const Snapshot>(std::move(seen));
}

Status CheckConflict(const std::string& table, const Snapshot& now, const OlderTables& older) {
  if (older.empty()) return {};
  std::set<std::string_view> joined = {table};
  for (size_t known = 0; known < joined.size();) {
    known = joined.size();
    for (const auto& t : now.tables) {
      for (const ForeignKey& key : t->schema.foreign_keys) {
        if (!joined.contains(t->schema.name) && !joined.contains(key.referenced)) continue;
        joined.insert(t->schema.name);
        joined.insert(key.referenced);
      }
    }
  }
  const auto has_keys = [&](const auto& t) { return t->schema.name == table && !t->schema.foreign_keys.empty(); };
  const bool by_table = joined.size() > 1 || std::ranges::any_of(now.tables, has_keys);
  for (const OlderTable& t : older.tables) {
    if (joined.contains(t.before->schema.name) && (by_table || !HasOtherRowsAlone(t)))
      return CannotSerialize(Named(*t.before));
  }
  return {};
}

Result<std::unique_ptr<TableWriter>> WriteOlder(const std::string& table, const Snapshot& now,
                                                std::unique_ptr<TableWriter> writer, bool on_conflict,
                                                OlderTables* older) {
  OlderTable* const found = FindIn(older->tables, table);
  if (found == nullptr) return writer;
  TESSERA_TRY(See(older->directory, now.Find(table), found));
  return std::unique_ptr<TableWriter>(std::make_unique<OlderWriter>(found->rows, std::move(writer), on_conflict));
}

Status CheckOlderKeys(const std::string& table, const OlderTables& older) {
  const OlderTable* const found = older.Find(table);
  if (found == nullptr || found->rows == nullptr) return {};
  const OlderRows& rows = *found->rows;
  const TableSchema& schema = rows.table()->schema;
  if ((schema.primary_key.empty() && schema.unique_keys.empty()) || rows.changed().empty() || rows.own().empty())
    return {};
  return OfUnseenKey(CheckKeys(schema, rows.changed(), rows.own(), nullptr), *rows.table());
}

}  // namespace tessera
