#include "tablet/load/columnar_options.h"

#include <sstream>

namespace tessera {

std::string ColumnarOptions::ToText() const {
  std::ostringstream out;
  out << static_cast<int>(format) << ' ' << static_cast<int>(compression) << ' ' << row_group_rows << ' ' << stream;
  return out.str();
}

ColumnarOptions ColumnarOptions::Of(const std::string& text) {
  std::istringstream in(text);
  int format = 0, compression = 0;
  ColumnarOptions out;
  in >> format >> compression >> out.row_group_rows >> out.stream;
  out.format = static_cast<FileFormat>(format);
  out.compression = static_cast<ColumnarCompression>(compression);
  return out;
}

}  // namespace tessera
