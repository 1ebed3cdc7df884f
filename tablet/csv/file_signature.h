// What kind of file a file is that should be text, by its first bytes: so that a COPY of an archive or of UTF-16 says so
// instead of loading nothing or complaining of its first field. And what kind a file should be by its name.
//
// Start at: FindSignature, FindPromise. Any thread.
#pragma once

#include <string_view>

namespace tessera {

struct FileSignature {
  const char* what;     ///< "a gzip file"
  const char* convert;  ///< a command that writes FILE as text to its output; nullptr if none is in common use
  /// What reads it here, if COPY of CSV does not: "parquet", of FORMAT parquet and read_parquet; else nullptr.
  const char* format = nullptr;
};

/// What the ending of a file's name promises, if that is not text that COPY reads and writes.
struct FilePromise {
  const char* ending;  ///< "gz"
  const char* what;    ///< "a gzip file"
  const char*
      compress;  ///< a command that makes it of its input and writes it to its output; nullptr if it is no compressed text
  /// It is text: COPY, which makes CSV, does not read and write it, but a program might find CSV under the name.
  bool is_text;
};

/// nullptr if the name promises nothing, or CSV.
const FilePromise* FindPromise(std::string_view name);

/// `start`: the first bytes of the file, 16 or all of it. nullptr if they may be text.
const FileSignature* FindSignature(std::string_view start);

}  // namespace tessera
