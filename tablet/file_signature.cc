// The list of signatures.
#include "tablet/file_signature.h"

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

struct Entry {
  std::string_view bytes;
  /// The signature is printable: a text may begin with it too, so a control byte has to follow.
  bool printable;
  FileSignature signature;
};

constexpr Entry kEntries[] = {
    {"\x1f\x8b"sv, false, {"a gzip file", "gzip -dc FILE"}},
    {"\x28\xb5\x2f\xfd"sv, false, {"a zstd file", "zstd -dc FILE"}},
    {"\xfd\x37zXZ\0"sv, false, {"an xz file", "xz -dc FILE"}},
    {"PK\x03\x04"sv, false, {"a zip archive", "unzip -p FILE"}},
    {"PAR1"sv, true, {"a Parquet file", nullptr}},
    {"\xff\xfe"sv, false, {"UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE"}},
    {"\xfe\xff"sv, false, {"UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE"}},
};

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r' && c != '\n'; }

}  // namespace

const FileSignature* FindSignature(std::string_view start) {
  for (const Entry& entry : kEntries) {
    if (!start.starts_with(entry.bytes)) continue;
    const size_t next = entry.bytes.size();
    if (!entry.printable || (start.size() > next && IsControl(start[next]))) return &entry.signature;
  }
  return nullptr;
}

}  // namespace tessera
