#include "session/updated_keys.h"

#include <algorithm>

#include "tablet/catalog/live_tablet.h"
#include "tablet/chunk/chunk_decoder.h"

namespace tessera {

UpdatedKeys::UpdatedKeys(const Snapshot& snapshot) {
  for (const auto& table : snapshot.tables) {
    for (const ForeignKey& key : table->schema.foreign_keys) {
      if (std::max(key.on_update, key.on_delete) == ForeignKey::Action::kNoAction) continue;
      const auto referenced = snapshot.Find(key.referenced);
      if (referenced == nullptr) continue;
      Watched& watched = tables_[key.referenced];
      for (const std::string& name : key.to) {
        const int column = referenced->schema.Find(name);
        if (std::ranges::count(watched.columns, column) == 0) watched.columns.push_back(column);
      }
    }
  }
  for (auto& [name, watched] : tables_) {
    const TableSchema& schema = snapshot.Find(name)->schema;
    for (size_t i = 0; i < 2 * watched.columns.size(); ++i) {
      const auto column = static_cast<size_t>(watched.columns[i % watched.columns.size()]);
      watched.rows.columns.emplace_back().type = schema.columns[column].type;
    }
  }
}

Status UpdatedKeys::Note(const TableInfo& table, std::span<const int64_t> numbers, const RowBatch& batch) {
  const auto at = tables_.find(table.schema.name);
  if (at == tables_.end()) return {};
  Watched& watched = at->second;
  const size_t count = watched.columns.size();
  for (size_t i = 0; i < count; ++i) {
    const int column = watched.columns[i];
    int64_t of = -1;
    ChunkPointer chunk;
    for (const int64_t number : numbers) {
      if (const int64_t tablet = number >> kRowNumberBits; tablet != of) {
        TESSERA_ASSIGN(chunk, table.tablets[static_cast<size_t>(tablet)]->Chunk(column));
        of = tablet;
      }
      const auto row = static_cast<uint32_t>(number & ((int64_t{1} << kRowNumberBits) - 1));
      watched.rows.columns[i].Append(DecodeValue(*chunk, row));
    }
    watched.rows.columns[count + i].AppendAll(batch.columns[static_cast<size_t>(column)]);
  }
  watched.rows.rows += numbers.size();
  return {};
}

RowBatch UpdatedKeys::Of(const std::string& table, std::span<const int> columns) const {
  RowBatch out;
  const auto at = tables_.find(table);
  if (at == tables_.end()) return out;
  const Watched& watched = at->second;
  out.rows = watched.rows.rows;
  for (const size_t half : {size_t{0}, watched.columns.size()}) {
    for (const int column : columns) {
      const auto place = static_cast<size_t>(std::ranges::find(watched.columns, column) - watched.columns.begin());
      out.columns.push_back(watched.rows.columns[half + place]);
    }
  }
  return out;
}

}  // namespace tessera
