// Whether a load can be shared, what the others are told, and a CSV file that is shared.
#include "tablet/load/shared_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "tablet/csv/csv_reader.h"
#include "tablet/csv/csv_shares.h"

namespace tessera {
namespace {

class SharedCsvFile final : public SharedFile {
 public:
  SharedCsvFile(CsvFile file, const SharedLoad& load)
      : file_(std::move(file)),
        schema_(load.schema),
        options_(load.options),
        shares_(load.text_bytes, load.options.format.quote) {}

  uint64_t bytes() const override { return file_.size(); }
  int64_t written() const override { return file_.written(); }
  size_t stretches() const override { return shares_.stretches(); }

  Result<std::vector<StretchCount>> Count(size_t begin, size_t end, ThreadPool* pool) const override {
    TESSERA_ASSIGN(const std::vector<CsvCount> counts, shares_.Count(file_, begin, end, pool));
    std::vector<StretchCount> out;
    for (const CsvCount& c : counts) out.push_back({c.lines, c.records, c.odd_quotes});
    return out;
  }

  Status SetCounts(const std::vector<StretchCount>& counts) override {
    std::vector<CsvCount> all(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) {
      all[i].lines = counts[i].lines;
      all[i].records = counts[i].rows;
      all[i].odd_quotes = counts[i].state;
    }
    TESSERA_TRY(shares_.SetCounts(file_, std::move(all)));
    rows_ = std::max(shares_.records(), head()) - head();
    return {};
  }

  uint64_t rows() const override { return rows_; }

  Result<std::unique_ptr<FileReader>> ReadRows(uint64_t begin, uint64_t end) override {
    TESSERA_ASSIGN(const CsvPlace first, shares_.Find(file_, begin == 0 ? 0 : begin + head()));
    TESSERA_ASSIGN(const CsvPlace last, shares_.Find(file_, end + head()));
    TESSERA_TRY(file_.Limit(first.offset, last.offset, first.lines + 1));
    return OpenCsvReader(std::move(file_), schema_, options_);
  }

 private:
  uint64_t head() const { return options_.format.header ? 1 : 0; }

  CsvFile file_;
  const TableSchema schema_;
  const CopyFromOptions options_;
  CsvShares shares_;
  uint64_t rows_ = 0;
};

/// Whether the bytes of the file are those of its text, and all processes read them in the same way.
bool IsPlain(const CopyFromOptions& options) {
  return options.skip_lines == 0 && options.encoding == TextEncoding::kUtf8 && !options.ignore_errors &&
         options.format.quote != 0 && options.decimal == '.' && options.thousands == 0 && options.date_format.empty() &&
         options.timestamp_format.empty();
}

}  // namespace

Result<std::unique_ptr<SharedFile>> OpenSharedFile(const SharedLoad& load) {
  TESSERA_ASSIGN(CsvFile file, CsvFile::Open(load.file));
  return std::unique_ptr<SharedFile>(std::make_unique<SharedCsvFile>(std::move(file), load));
}

Result<bool> LoadWithRanks(const std::string& file, const CopyFromOptions& options, TableLoad* own) {
  const TableSchema& schema = own->schema();
  if (options.ranks == nullptr || !IsPlain(options) || options.rules || !schema.cluster_by.empty() ||
      !schema.distribute_by.empty())
    return false;
  TESSERA_ASSIGN(CsvFile csv, CsvFile::Open(file));
  TESSERA_ASSIGN(const bool can, CanBeShared(csv, options.format));
  if (!can) return false;
  SharedLoad load;
  load.target = own->target();
  std::random_device random;
  load.target.load = fmt::format("{:08x}{:08x}", random(), random());
  load.schema.name = schema.name;
  load.schema.columns = schema.columns;
  load.short_rows = own->short_rows();
  load.tablet_rows = own->tablet_rows();
  load.file = file;
  load.file_bytes = load.text_bytes = csv.size();
  const size_t fields = options.columns.empty() ? schema.columns.size() : options.columns.size();
  if (fields > 1) {
    TESSERA_ASSIGN(load.text_bytes, csv.BytesWithoutBlankEnd());
  }
  load.file_written = csv.written();
  load.options = options;
  SharedCsvFile shared(std::move(csv), load);
  return options.ranks->Load(load, &shared, own);
}

}  // namespace tessera
