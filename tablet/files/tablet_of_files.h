// A tablet whose columns lie in several files, or are constants: see tablet_layout.h.
//
// Start at: TabletOfFiles. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/files/part_tablet.h"
#include "tablet/files/run_tablet.h"
#include "tablet/files/tablet.h"
#include "tablet/files/tablet_file.h"
#include "tablet/files/tablet_layout.h"
#include "tablet/values/types.h"

namespace tessera {

class TabletOfFiles final : public Tablet, public std::enable_shared_from_this<TabletOfFiles> {
 public:
  /// `identity`: of the tablet; there need not be a file of that number. `files`: those of the layout. `types`: of all columns.
  /// REQUIRES: the layout is of that number of columns.
  TabletOfFiles(const TabletIdentity& identity, TabletLayout layout,
                std::vector<std::shared_ptr<const TabletFile>> files, const std::vector<SqlType>& types);

  uint32_t rows() const override { return identity_.rows; }
  uint64_t weight() const override { return identity_.file_bytes; }
  Result<ChunkPointer> Chunk(int column) const override;
  Result<ChunkPointer> PackedChunk(int column) const override;
  Result<ChunkPointer> ChunkForTiles(int column) const override;
  bool AreCodesChecked(int column) const override;
  void NoteCodesChecked(int column) const override;
  Result<ChunkPointer> Describe(int column) const override;
  uint64_t Expect(const std::vector<int>& columns, bool again) const override;
  bool WasRead(const std::vector<int>& columns) const override;
  Result<ChunkStorage> StorageOf(int column) const override;
  Result<std::string> SchemesOf(int column) const override;
  Status Intact() const override;
  Result<std::shared_ptr<const Tablet>> Runs(int column, uint32_t runs) const override;
  const Tablet* Part(uint32_t first, uint32_t rows) const override { return parts_.Find(*this, first, rows); }
  ColumnSource SourceOf(int column) const override;
  std::string path() const override;

  const TabletIdentity& identity() const { return identity_; }
  const TabletLayout& layout() const { return layout_; }
  const std::vector<std::shared_ptr<const TabletFile>>& files() const { return files_; }

 private:
  struct Constant {
    Status status;  ///< why its text is no value
    EncodedChunk bytes;
    tessera::Chunk chunk;
  };
  struct Place {
    int file = -1;   ///< -1: a constant
    int column = 0;  ///< of the file; the number of the constant
  };
  static std::unique_ptr<const Constant> MakeConstant(const ConstantColumn& constant, const SqlType& type,
                                                      uint32_t rows);
  const Place& PlaceOf(int column) const { return places_[static_cast<size_t>(column)]; }
  const TabletFile& FileOf(const Place& place) const { return *files_[static_cast<size_t>(place.file)]; }
  Result<ChunkPointer> ConstantChunk(const Place& place) const;
  /// The columns that lie in file `file`, by their numbers there.
  std::vector<int> ColumnsIn(size_t file, const std::vector<int>& columns) const;

  const TabletIdentity identity_;
  const TabletLayout layout_;
  const std::vector<std::shared_ptr<const TabletFile>> files_;
  std::vector<Place> places_;  ///< by column
  std::vector<std::unique_ptr<const Constant>> constants_;
  mutable std::mutex mutex_;
  mutable std::map<int, std::unique_ptr<const RunTablet>> runs_;  ///< by column
  const TabletParts parts_;
};

/// With or without deleted rows; nullptr if the tablet is one file.
const TabletOfFiles* FilesOf(const Tablet& tablet);

/// The files of this process in which a tablet lies.
std::vector<const TabletFile*> StoredFiles(const Tablet& tablet);

/// The tablet with that identity, or if it has a layout, of these files. `open` gives the file of an identity, whose columns
/// have these types; TypeId::kNull: one that is not read.
template <class Open>
std::shared_ptr<const Tablet> MakeTablet(const TabletIdentity& identity, const TabletLayout* layout,
                                         std::shared_ptr<const std::vector<SqlType>> types, Open open) {
  if (layout == nullptr) return open(identity, std::move(types));
  std::vector<std::shared_ptr<const TabletFile>> files;
  for (const ColumnFile& file : layout->files) {
    auto of_file = std::make_shared<std::vector<SqlType>>();
    for (const int32_t column : file.columns)
      of_file->push_back(column < 0 ? SqlType::Of(TypeId::kNull) : (*types)[static_cast<size_t>(column)]);
    files.push_back(open(IdentityOf(identity, file), std::move(of_file)));
    if (files.back() == nullptr) return nullptr;
  }
  return std::make_shared<const TabletOfFiles>(identity, *layout, std::move(files), *types);
}

}  // namespace tessera
