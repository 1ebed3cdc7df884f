// What kind of file a file is that should be text, by its first bytes: so that a COPY of an archive or of UTF-16 says so
// instead of loading nothing or complaining of its first field.
//
// Start at: FindSignature. Any thread.
#pragma once

#include <string_view>

namespace tessera {

struct FileSignature {
  const char* what;     ///< "a gzip file"
  const char* convert;  ///< a command that writes FILE as text to its output; nullptr if none is in common use
};

/// `start`: the first bytes of the file, 16 or all of it. nullptr if they may be text.
const FileSignature* FindSignature(std::string_view start);

}  // namespace tessera
