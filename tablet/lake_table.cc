#include "tablet/lake_table.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/columnar/columnar_plugin.h"
#include "tablet/columnar/columnar_tablets.h"
#include "tablet/files/file_identity.h"
#include "tablet/files/live_rows.h"
#include "tablet/files/made_tablet.h"
#include "tablet/hive_folders.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

using Naming = std::function<Result<std::string>(const std::string&)>;

/// Rows that the catalog has itself.
class CatalogTablet final : public MadeTablet {
 public:
  CatalogTablet(std::shared_ptr<const LakeRows> of, size_t first, uint32_t rows, const std::string& path,
                std::vector<SqlType> types, std::vector<ColumnBounds> bounds)
      : MadeTablet(path, rows, std::move(types), std::move(bounds)), of_(std::move(of)), first_(first) {}

 private:
  Result<MadeColumn> Values(int column) const override {
    const auto at = static_cast<size_t>(column);
    if (const std::string& problem = of_->table.columns[at].problem; !problem.empty())
      return Unsupported(path() + ", column \"" + of_->table.columns[at].name + "\": " + problem);
    MadeColumn made;
    made.values.type = type(column);
    for (size_t row = first_; row < first_ + rows(); ++row) made.values.AppendFrom(of_->rows.columns[at], row);
    return made;
  }
  Status OutOfBounds(int) const override { return {ErrorCode::kInternal, path() + " has values without bounds"}; }

  const std::shared_ptr<const LakeRows> of_;
  const size_t first_;
};

ColumnBounds BoundsOf(const LakeColumn& column, const ColumnVector& values, size_t first, size_t rows) {
  ColumnBounds bounds;
  if (!column.problem.empty()) return bounds;
  bounds.null_count = 0;
  for (size_t row = first; row < first + rows; ++row) {
    if (values.IsNull(row)) {
      ++bounds.null_count;
    } else if (column.type.storage() == StorageClass::kInt) {
      const int128_t v = values.fixed[row];
      bounds.min = bounds.has_range ? std::min(bounds.min, v) : v;
      bounds.max = bounds.has_range ? std::max(bounds.max, v) : v;
      bounds.has_range = true;
    }
  }
  return bounds;
}

/// Adds what is known of `rows` more rows to the statistics of a column.
void AddBounds(const ColumnBounds& bounds, uint64_t rows, uint64_t rows_before, ColumnStatistics* s) {
  const bool known_before = rows_before == 0 || s->has_range || s->null_count >= rows_before;
  const bool known = bounds.has_range || bounds.null_count == static_cast<int64_t>(rows);
  if (!known_before || !known) {
    s->has_range = false;
    s->min = s->max = 0;
  } else if (bounds.has_range) {
    s->min = s->has_range ? std::min(s->min, bounds.min) : bounds.min;
    s->max = s->has_range ? std::max(s->max, bounds.max) : bounds.max;
    s->has_range = true;
  }
  s->null_count += bounds.null_count >= 0 ? static_cast<uint64_t>(bounds.null_count) : 1;
  s->distinct += rows;
  s->encoded_bytes += rows * sizeof(int64_t);
}

class LakeTableMaker {
 public:
  LakeTableMaker(const LakeSpec& spec, const Naming& naming, std::shared_ptr<const LakeRows> rows, TableInfo* info)
      : spec_(spec), naming_(naming), rows_(std::move(rows)), info_(*info) {}

  Status Make() {
    for (const LakeColumn& column : rows_->table.columns) info_.schema.columns.push_back({column.name, column.type});
    std::vector<ColumnarFile> files;
    for (const LakeFile& file : rows_->files) {
      TESSERA_ASSIGN(ColumnarFile found, Find(file.path));
      TESSERA_TRY(MapFields(file, &found));
      files.push_back(std::move(found));
    }
    TESSERA_ASSIGN(const bool added, AddColumnarTablets(files, &info_));
    if (!added) {
      return Unsupported("a data file of DuckLake table \"" + info_.schema.name + "\" has a row group of more than " +
                             std::to_string(kGreatestTabletRows) + " rows, which is not supported",
                         -1, "SELECT * FROM 'FILE' reads a Parquet file with any row groups.");
    }
    for (size_t f = 0; f < files.size(); ++f) TESSERA_TRY(AddLive(rows_->files[f], *files[f].groups));
    DropDeleted();
    AddCatalogRows();
    MarkLive(live_, &info_);
    return {};
  }

 private:
  Status Damaged(const std::string& path, const std::string& what) const {
    return {ErrorCode::kCorrupt, "DuckLake file " + QuoteForMessage(path) + ": " + what};
  }

  /// The file, open, with nothing said of its fields.
  Result<ColumnarFile> Find(const std::string& path) const {
    std::string real = path;
    if (naming_) {
      TESSERA_ASSIGN(real, naming_(path));
    }
    ColumnarFile file;
    Result<FileIdentity> identity = IdentifyFile(real);
    if (!identity.ok()) {
      return Status(identity.status().kind(), identity.status().message(),
                    "The catalog names it. ATTACH ... (DATA_PATH 'folder') says where the files are.");
    }
    file.identity = *std::move(identity);
    file.identity.path = path;
    file.source = {real, path, FileFormat::kParquet};
    TESSERA_ASSIGN(ColumnarPlugin* const plugin, LoadColumnarPlugin(path));
    TESSERA_ASSIGN(file.groups, plugin->OpenGroups(file.source));
    return file;
  }

  int ColumnOf(int64_t id) const {
    const std::vector<LakeColumn>& columns = rows_->table.columns;
    const auto at = std::ranges::find(columns, id, &LakeColumn::id);
    return at == columns.end() ? -1 : static_cast<int>(at - columns.begin());
  }

  /// Which column of the table each field is, and which have one value in all of the file.
  Status MapFields(const LakeFile& file, ColumnarFile* out) const {
    const std::vector<LakeColumn>& columns = rows_->table.columns;
    std::vector<bool> found(columns.size());
    for (const ColumnarField& field : out->groups->fields()) {
      int64_t id = field.id;
      if (file.names) {
        const auto named =
            std::ranges::find(*file.names, LowerCase(field.name), &std::pair<std::string, int64_t>::first);
        id = named == file.names->end() ? -1 : named->second;
      }
      int column = id < 0 ? -1 : ColumnOf(id);
      if (column >= 0 && found[static_cast<size_t>(column)])
        return Damaged(file.path, "two of its fields are column \"" + columns[static_cast<size_t>(column)].name + "\"");
      if (column >= 0) found[static_cast<size_t>(column)] = true;
      out->columns.push_back(column);
    }
    const bool has_ids =
        file.names || std::ranges::any_of(out->groups->fields(), [](const ColumnarField& f) { return f.id >= 0; });
    if (!has_ids) return Damaged(file.path, "its fields have no numbers, and the catalog has no names for them");
    for (const auto& [name, id] : file.folders) {
      const int column = ColumnOf(id);
      if (column < 0) continue;
      TESSERA_ASSIGN(Value value, FolderValue(file.path, name, columns[static_cast<size_t>(column)].type));
      out->constants.push_back({column, std::move(value)});
      found[static_cast<size_t>(column)] = true;
    }
    for (size_t c = 0; c < columns.size(); ++c) {
      out->problems.push_back(columns[c].problem);
      if (!found[c] && !columns[c].before.null) out->constants.push_back({static_cast<int>(c), columns[c].before});
    }
    return {};
  }

  Result<Value> FolderValue(const std::string& path, const std::string& name, const SqlType& type) const {
    for (const auto& [folder, value] : FoldersOf(path)) {
      if (folder != name) continue;
      if (!value) return Value::Null(type);
      return ParseValue(*value, type);
    }
    return Damaged(path, "no folder of it is called \"" + name + "=...\", as the catalog says");
  }

  /// A column of integers of a row group, in which there is no NULL.
  Result<std::vector<int64_t>> Integers(const ColumnarFile& file, size_t group, std::string_view name) const {
    const std::vector<ColumnarField>& fields = file.groups->fields();
    const auto at = std::ranges::find(fields, name, &ColumnarField::name);
    if (at == fields.end() || !at->type.IsInteger())
      return Damaged(file.source.name, "it has no integers \"" + std::string(name) + "\"");
    GroupColumn column = file.groups->Read(group, static_cast<int>(at - fields.begin()), false);
    if (column.error) {
      return Status(column.error->kind, "DuckLake file " + QuoteForMessage(file.source.name) + ", " +
                                            file.groups->place(group) + ": " + column.error->message);
    }
    const bool any_null = std::ranges::any_of(column.values.null, [](uint8_t n) { return n != 0; });
    if (any_null || column.values.fixed.size() != file.groups->rows()[group])
      return Damaged(file.source.name, "a value of \"" + std::string(name) + "\" is NULL");
    return std::move(column.values.fixed);
  }

  /// Adds the positions of a file of them.
  Status ReadDeletions(const LakeDeletions& of, std::vector<uint64_t>* deleted) const {
    TESSERA_ASSIGN(const ColumnarFile file, Find(of.path));
    for (size_t g = 0; g < file.groups->rows().size(); ++g) {
      TESSERA_ASSIGN(const std::vector<int64_t> positions, Integers(file, g, "pos"));
      std::vector<int64_t> since;
      if (of.of_several) {
        TESSERA_ASSIGN(since, Integers(file, g, kLakeSnapshotColumn));
      }
      for (size_t i = 0; i < positions.size(); ++i) {
        if (since.empty() || since[i] <= rows_->version) deleted->push_back(static_cast<uint64_t>(positions[i]));
      }
    }
    return {};
  }

  /// Adds which rows of a file are live, by row group.
  Status AddLive(const LakeFile& file, const ColumnarGroups& groups) {
    std::vector<uint64_t> deleted = file.deleted;
    for (const LakeDeletions& of : file.deletions) TESSERA_TRY(ReadDeletions(of, &deleted));
    std::ranges::sort(deleted);
    std::optional<ColumnarFile> several;
    if (file.of_several) {
      TESSERA_ASSIGN(several, Find(file.path));
    }
    uint64_t first = 0;
    auto next = deleted.begin();
    for (size_t g = 0; g < groups.rows().size(); ++g) {
      const uint64_t rows = groups.rows()[g];
      std::vector<uint64_t> words((rows + 63) / 64);
      const auto mark = [&](uint64_t row) { words[row / 64] |= uint64_t{1} << row % 64; };
      for (; next != deleted.end() && *next < first + rows; ++next) mark(*next - first);
      if (several) {
        TESSERA_ASSIGN(const std::vector<int64_t> since, Integers(*several, g, kLakeSnapshotColumn));
        for (size_t row = 0; row < since.size(); ++row) {
          if (since[row] > rows_->version) mark(row);
        }
      }
      const bool any = std::ranges::any_of(words, [](uint64_t word) { return word != 0; });
      live_.push_back(any ? std::make_shared<const LiveRows>(static_cast<uint32_t>(rows), std::move(words)) : nullptr);
      first += rows;
    }
    if (next == deleted.end()) return {};
    return Damaged(file.path, "row " + std::to_string(*next) + " is deleted, and it has " + std::to_string(first));
  }

  /// Leaves out the tablets of which no row is left.
  void DropDeleted() {
    size_t kept = 0;
    for (size_t t = 0; t < live_.size(); ++t) {
      const uint32_t rows = info_.tablets[t]->rows();
      if (live_[t] != nullptr && live_[t]->deleted() == rows) {
        info_.stored_rows -= rows;
        continue;
      }
      std::swap(live_[kept], live_[t]);
      std::swap(info_.tablets[kept++], info_.tablets[t]);
    }
    live_.resize(kept);
    info_.tablets.resize(kept);
    if (kept == 0) info_.statistics.assign(info_.schema.columns.size(), {});
  }

  void AddCatalogRows() {
    std::vector<SqlType> types;
    for (const LakeColumn& column : rows_->table.columns) types.push_back(column.type);
    const size_t all = rows_->rows.rows;
    for (size_t first = 0; first < all; first += kGreatestTabletRows) {
      const size_t rows = std::min<size_t>(all - first, kGreatestTabletRows);
      std::vector<ColumnBounds> bounds;
      for (size_t c = 0; c < types.size(); ++c) {
        bounds.push_back(BoundsOf(rows_->table.columns[c], rows_->rows.columns[c], first, rows));
        AddBounds(bounds.back(), rows, info_.stored_rows, &info_.statistics[c]);
      }
      info_.tablets.push_back(std::make_shared<const CatalogTablet>(
          rows_, first, static_cast<uint32_t>(rows), "DuckLake catalog " + QuoteForMessage(spec_.catalog), types,
          std::move(bounds)));
      live_.push_back(nullptr);
      info_.stored_rows += rows;
    }
    for (ColumnStatistics& s : info_.statistics) s.distinct = std::min(s.distinct, info_.stored_rows);
  }

  const LakeSpec& spec_;
  const Naming& naming_;
  const std::shared_ptr<const LakeRows> rows_;
  TableInfo& info_;
  std::vector<std::shared_ptr<const LiveRows>> live_;  ///< by tablet
};

}  // namespace

std::string LakeSpec::Key() const {
  std::string key = "lake";
  for (const std::string& part : {catalog, data_path, table}) key += '\0' + std::to_string(part.size()) + ':' + part;
  key += moment.version ? " version " + std::to_string(*moment.version) : "";
  return key + (moment.time ? " time " + std::to_string(*moment.time) : "");
}

Status MakeLakeTable(const LakeSpec& spec, const Naming& naming, TableInfo* info) {
  TESSERA_ASSIGN(LakeRows rows, ReadLakeTable(spec.catalog, spec.data_path, spec.moment, spec.table));
  LakeTableMaker maker(spec, naming, std::make_shared<const LakeRows>(std::move(rows)), info);
  return maker.Make();
}

}  // namespace tessera
