// How a database is opened.
#pragma once

namespace tessera {

enum class OpenMode { kReadWrite, kReadOnly };

}  // namespace tessera
