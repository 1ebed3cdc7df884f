#include "tablet/files/tablet_of_files.h"

#include <algorithm>
#include <utility>

#include "tablet/chunk/tablet_format.h"
#include "tablet/files/io_error.h"
#include "tablet/values/row_batch.h"

namespace tessera {

bool TabletLayout::IsOf(size_t columns) const {
  std::vector<bool> has_place(columns);
  size_t places = 0;
  const auto place = [&](int32_t column) {
    const auto c = static_cast<size_t>(column);
    if (column < 0 || c >= columns || has_place[c]) return false;
    has_place[c] = true;
    ++places;
    return true;
  };
  for (const ColumnFile& file : files) {
    for (const int32_t column : file.columns) {
      if (column != -1 && !place(column)) return false;
    }
  }
  for (const ConstantColumn& constant : constants) {
    if (!place(constant.column)) return false;
  }
  return places == columns;
}

void DropUnread(TabletLayout* layout) {
  std::erase_if(layout->files, [](const ColumnFile& file) {
    return std::ranges::all_of(file.columns, [](int32_t column) { return column < 0; });
  });
}

uint64_t TabletLayout::bytes() const {
  uint64_t sum = 0;
  for (const ColumnFile& file : files) sum += file.bytes;
  return std::max<uint64_t>(sum, 1);
}

const TabletIdentity* IdentityOf(const Tablet& tablet) {
  const std::shared_ptr<const Tablet> unmarked = tablet.unmarked();
  const Tablet* const stored = unmarked != nullptr ? unmarked.get() : &tablet;
  if (const auto* file = dynamic_cast<const TabletFile*>(stored)) return &file->identity();
  const auto* files = dynamic_cast<const TabletOfFiles*>(stored);
  return files != nullptr ? &files->identity() : nullptr;
}

const TabletOfFiles* FilesOf(const Tablet& tablet) {
  const std::shared_ptr<const Tablet> unmarked = tablet.unmarked();
  return dynamic_cast<const TabletOfFiles*>(unmarked != nullptr ? unmarked.get() : &tablet);
}

std::vector<const TabletFile*> StoredFiles(const Tablet& tablet) {
  std::vector<const TabletFile*> out;
  if (const TabletOfFiles* const files = FilesOf(tablet)) {
    for (const auto& file : files->files()) out.push_back(file.get());
    return out;
  }
  const std::shared_ptr<const Tablet> unmarked = tablet.unmarked();
  const auto* file = dynamic_cast<const TabletFile*>(unmarked != nullptr ? unmarked.get() : &tablet);
  if (file != nullptr) out.push_back(file);
  return out;
}

TabletIdentity IdentityOf(const TabletIdentity& tablet, const ColumnFile& file) {
  TabletIdentity identity = tablet;
  identity.tablet_id = file.id;
  identity.file_bytes = file.bytes;
  identity.header_checksum = file.header_checksum;
  identity.file_id = file.file_id;
  identity.offset = file.offset;
  return identity;
}

TabletOfFiles::TabletOfFiles(const TabletIdentity& identity, TabletLayout layout,
                             std::vector<std::shared_ptr<const TabletFile>> files, const std::vector<SqlType>& types)
    : identity_(identity), layout_(std::move(layout)), files_(std::move(files)), places_(types.size()) {
  for (size_t f = 0; f < layout_.files.size(); ++f) {
    const std::vector<int32_t>& columns = layout_.files[f].columns;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c] >= 0) places_[static_cast<size_t>(columns[c])] = {static_cast<int>(f), static_cast<int>(c)};
    }
  }
  for (const ConstantColumn& constant : layout_.constants) {
    const auto column = static_cast<size_t>(constant.column);
    places_[column] = {-1, static_cast<int>(constants_.size())};
    constants_.push_back(MakeConstant(constant, types[column], identity.rows));
  }
}

std::unique_ptr<const TabletOfFiles::Constant> TabletOfFiles::MakeConstant(const ConstantColumn& constant,
                                                                           const SqlType& type, uint32_t rows) {
  auto out = std::make_unique<Constant>();
  ColumnVector one;
  one.type = type;
  Result<Value> value = constant.value ? ParseValue(*constant.value, type) : Result<Value>(Value::Null(type));
  if (!value.ok()) {
    out->status = value.status();
    return out;
  }
  one.Append(*value);
  const ColumnPiece piece{&one, 0, 1};
  out->bytes = EncodeChunk(type, {&piece, 1});
  out->chunk = ViewChunk(out->bytes.descriptor, 1, out->bytes.streams.data());
  const bool is_null = out->chunk.null_count > 0;
  out->chunk.rows = rows;
  out->chunk.null_count = is_null ? rows : 0;
  out->chunk.encoded_bytes = 0;
  out->chunk.longest_entry = out->chunk.text_bytes;
  return out;
}

Result<ChunkPointer> TabletOfFiles::ConstantChunk(const Place& place) const {
  const Constant& constant = *constants_[static_cast<size_t>(place.column)];
  if (!constant.status.ok()) return CorruptTablet(path(), constant.status.message());
  return ChunkPointer(ChunkPointer(), &constant.chunk);
}

Result<ChunkPointer> TabletOfFiles::Chunk(int column) const {
  const Place& place = PlaceOf(column);
  return place.file < 0 ? ConstantChunk(place) : FileOf(place).Chunk(place.column);
}

Result<ChunkPointer> TabletOfFiles::PackedChunk(int column) const {
  const Place& place = PlaceOf(column);
  return place.file < 0 ? ConstantChunk(place) : FileOf(place).PackedChunk(place.column);
}

Result<ChunkPointer> TabletOfFiles::ChunkForTiles(int column) const {
  const Place& place = PlaceOf(column);
  return place.file < 0 ? ConstantChunk(place) : FileOf(place).ChunkForTiles(place.column);
}

bool TabletOfFiles::AreCodesChecked(int column) const {
  const Place& place = PlaceOf(column);
  return place.file < 0 || FileOf(place).AreCodesChecked(place.column);
}

void TabletOfFiles::NoteCodesChecked(int column) const {
  const Place& place = PlaceOf(column);
  if (place.file >= 0) FileOf(place).NoteCodesChecked(place.column);
}

Result<ChunkPointer> TabletOfFiles::Describe(int column) const {
  const Place& place = PlaceOf(column);
  return place.file < 0 ? ConstantChunk(place) : FileOf(place).Describe(place.column);
}

std::vector<int> TabletOfFiles::ColumnsIn(size_t file, const std::vector<int>& columns) const {
  std::vector<int> out;
  for (const int column : columns) {
    const Place& place = PlaceOf(column);
    if (place.file == static_cast<int>(file)) out.push_back(place.column);
  }
  return out;
}

uint64_t TabletOfFiles::Expect(const std::vector<int>& columns, bool again) const {
  uint64_t bytes = 0;
  for (size_t f = 0; f < files_.size(); ++f) {
    const std::vector<int> here = ColumnsIn(f, columns);
    // (Without columns it is what is needed to find them.)
    if (!here.empty() || columns.empty()) bytes += files_[f]->Expect(here, again);
  }
  return bytes;
}

bool TabletOfFiles::WasRead(const std::vector<int>& columns) const {
  return std::ranges::all_of(columns, [&](int column) {
    const Place& place = PlaceOf(column);
    return place.file < 0 || FileOf(place).WasRead({place.column});
  });
}

Result<ChunkStorage> TabletOfFiles::StorageOf(int column) const {
  const Place& place = PlaceOf(column);
  if (place.file >= 0) return FileOf(place).StorageOf(place.column);
  TESSERA_ASSIGN(const ChunkPointer chunk, ConstantChunk(place));
  ChunkStorage out;
  out.schemes = "constant";
  out.nulls = chunk->null_count;
  const ConstantColumn& constant = layout_.constants[static_cast<size_t>(place.column)];
  out.min = Value::Null(chunk->type);
  if (constant.value) {
    TESSERA_ASSIGN(out.min, ParseValue(*constant.value, chunk->type));
  }
  out.max = out.min;
  return out;
}

Result<std::string> TabletOfFiles::SchemesOf(int column) const {
  const Place& place = PlaceOf(column);
  return place.file < 0 ? Result<std::string>(std::string("constant")) : FileOf(place).SchemesOf(place.column);
}

Status TabletOfFiles::Intact() const {
  for (const auto& file : files_) TESSERA_TRY(file->Intact());
  return {};
}

Result<std::shared_ptr<const Tablet>> TabletOfFiles::Runs(int column, uint32_t runs) const {
  const std::shared_ptr<const Tablet> self = shared_from_this();
  const Tablet* found = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (const auto known = runs_.find(column); known != runs_.end()) found = known->second.get();
  }
  if (found == nullptr) {
    TESSERA_ASSIGN(std::unique_ptr<const RunTablet> opened,
                   RunTablet::Open(self, column, static_cast<int>(places_.size()), runs));
    std::lock_guard lock(mutex_);
    found = runs_.try_emplace(column, std::move(opened)).first->second.get();
  }
  if (runs != 0 && found->rows() != runs) return CorruptTablet(path(), "another number of runs than on another rank");
  return std::shared_ptr<const Tablet>(self, found);
}

ColumnSource TabletOfFiles::SourceOf(int column) const {
  const Place& place = PlaceOf(column);
  if (place.file < 0) return {nullptr, column};
  return {files_[static_cast<size_t>(place.file)], place.column};
}

std::string TabletOfFiles::path() const {
  return files_.empty() ? "tablet " + std::to_string(identity_.tablet_id) : files_.back()->path();
}

}  // namespace tessera
