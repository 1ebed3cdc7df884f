// A file that is there whole or not at all: it is written under another name beside its own, which it gets at the end. A pipe
// or a terminal is written in place.
//
// Start at: ReplacedFile::Open. One thread at a time.
#pragma once

#include <string>

#include "base/status.h"
#include "tablet/files/file_descriptor.h"

namespace tessera {

class ReplacedFile {
 public:
  ReplacedFile() = default;
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  /// Removes what was written, unless Commit() succeeded.
  ~ReplacedFile();

  /// Errors: kIo, it cannot be written.
  Status Open(const std::string& file);
  int descriptor() const { return file_.get(); }
  bool is_open() const { return file_.valid(); }
  const std::string& path() const { return path_; }
  /// The file gets its name when the disk has all of it. Errors: kIo.
  Status Commit();

 private:
  std::string path_;
  std::string temporary_path_;  ///< empty where the file is written in place
  FileDescriptor file_;
};

}  // namespace tessera
