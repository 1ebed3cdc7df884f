#include "capi/frame_table.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>
#include <vector>

#include "tablet/chunk/tablet_format.h"
#include "tablet/files/made_tablet.h"
#include "tablet/load/tablet_cutter.h"

namespace tessera {
namespace {

/// Identifiers of such tables begin here: those of files and of temporary tables are below and above.
constexpr int64_t kFirstFrame = int64_t{3} << 40;

using SharedArray = std::shared_ptr<const OwnedArrow<ArrowArray>>;

/// Rows of an array.
struct Piece {
  SharedArray array;
  int64_t first = 0, rows = 0;
};

class FrameTablet final : public MadeTablet {
 public:
  FrameTablet(std::shared_ptr<const ArrowSource> source, std::vector<Piece> pieces, const std::string& name,
              uint32_t rows, std::vector<SqlType> types)
      : MadeTablet(name, rows, std::move(types), std::vector<ColumnBounds>(source->schema().columns.size())),
        source_(std::move(source)),
        pieces_(std::move(pieces)) {}

 private:
  Result<MadeColumn> Values(int column) const override {
    MadeColumn made;
    ColumnVector& all = made.values;
    all.type = type(column);
    for (const Piece& piece : pieces_) {
      TESSERA_ASSIGN(ColumnVector values,
                     source_->ReadColumn(**piece.array, static_cast<size_t>(column), piece.first, piece.rows));
      if (pieces_.size() == 1) {
        all = std::move(values);
      } else {
        all.AppendAll(values);
      }
    }
    return made;
  }
  Status OutOfBounds(int) const override { return {ErrorCode::kInternal, path() + " has values without bounds"}; }

  const std::shared_ptr<const ArrowSource> source_;
  const std::vector<Piece> pieces_;
};

/// Whether loading has nothing to say against the columns.
bool AreColumns(const TableSchema& schema) {
  std::set<std::string_view> names;
  const bool differ = std::ranges::all_of(
      schema.columns, [&](const ColumnSchema& c) { return !c.name.empty() && names.insert(c.name).second; });
  return differ && !schema.columns.empty() && schema.columns.size() <= kGreatestColumns;
}

}  // namespace

Result<std::shared_ptr<TableInfo>> MakeFrameTable(const std::shared_ptr<ArrowSource>& source, const std::string& name) {
  static std::atomic<int64_t> next_id{kFirstFrame};
  if (!AreColumns(source->schema())) return std::shared_ptr<TableInfo>();
  std::vector<SharedArray> arrays;
  uint64_t rows = 0;
  for (;;) {
    TESSERA_ASSIGN(OwnedArrow<ArrowArray> array, source->Next());
    if (!array.has_value()) break;
    rows += static_cast<uint64_t>(array->length);
    arrays.push_back(std::make_shared<const OwnedArrow<ArrowArray>>(std::move(array)));
  }
  auto table = std::make_shared<TableInfo>();
  table->id = next_id++;
  table->schema = source->schema();
  table->rows = table->stored_rows = rows;
  table->files.push_back({"the program's " + name, 0, 0, 0, 0});
  std::vector<SqlType> types;
  for (const ColumnSchema& column : table->schema.columns) types.push_back(column.type);
  const uint64_t most = ChooseTabletRows(rows);
  std::vector<Piece> pieces;
  uint64_t in_pieces = 0;
  const auto finish = [&] {
    if (in_pieces == 0) return;
    table->tablets.push_back(
        std::make_shared<const FrameTablet>(source, std::move(pieces), name, static_cast<uint32_t>(in_pieces), types));
    pieces.clear();
    in_pieces = 0;
  };
  for (const SharedArray& array : arrays) {
    for (int64_t first = 0; first < (**array).length;) {
      const auto count = std::min<int64_t>((**array).length - first, static_cast<int64_t>(most - in_pieces));
      pieces.push_back({array, first, count});
      in_pieces += static_cast<uint64_t>(count);
      first += count;
      if (in_pieces == most) finish();
    }
  }
  finish();
  // Nothing is known of the values but how many they are.
  ColumnStatistics unknown;
  unknown.null_count = rows > 0 ? 1 : 0;
  unknown.distinct = std::max<uint64_t>(rows / 8, 1);
  unknown.encoded_bytes = rows * 4;
  table->statistics.assign(types.size(), unknown);
  return table;
}

}  // namespace tessera
