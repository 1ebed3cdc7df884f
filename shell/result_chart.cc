#include "shell/result_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/display_width.h"
#include "shell/text_writer.h"

namespace tessera {
namespace {

constexpr size_t kUnknownWidth = 80;  ///< columns where there is no window

bool IsTime(const SqlType& type) { return type.id == TypeId::kDate || type.id == TypeId::kTime || type.IsTimestamp(); }

/// A number, or a moment as one. REQUIRES: it is not NULL.
double NumberOf(const ColumnVector& column, size_t row) {
  if (column.type.IsFloat()) return column.Float(row);
  if (IsTime(column.type)) return static_cast<double>(column.fixed[row]);
  std::string text;
  AppendText(column, row, &text);
  return std::strtod(text.c_str(), nullptr);
}

std::string TextOf(const ColumnVector& column, size_t row) {
  std::string text;
  AppendText(column, row, &text);
  return Printable(text);
}

std::string Repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string Padded(std::string text, size_t width) {
  const size_t own = DisplayWidth(text);
  return own < width ? text + std::string(width - own, ' ') : text;
}

class BarText final : public TextWriter {
 public:
  using TextWriter::TextWriter;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].type.IsNumeric()) measured_ = c;
    }
    if (measured_ == SIZE_MAX) {
      return SqlError(ErrorKind::kDatatypeMismatch, "bars need a column of numbers", -1,
                      "Its last one is how long they are; .mode box shows all columns.");
    }
    name_ = columns[measured_].name;
    return Status::Ok();
  }

  Status Rows(RowBatch&& batch) override {
    if (bars_.size() + batch.rows > kMostBars) {
      return Unsupported(fmt::format("more than {} bars are not shown", kMostBars), -1,
                         "Group the rows, or add LIMIT; .mode plot shows many points.");
    }
    for (size_t row = 0; row < batch.rows; ++row) {
      Bar& bar = bars_.emplace_back();
      for (size_t c = 0; c < batch.columns.size(); ++c) {
        if (c == measured_) continue;
        if (c > (measured_ == 0 ? 1U : 0U)) bar.label += "  ";
        bar.label += batch.columns[c].IsNull(row) ? NullText("NULL") : TextOf(batch.columns[c], row);
      }
      const ColumnVector& column = batch.columns[measured_];
      bar.is_null = column.IsNull(row);
      if (bar.is_null) continue;
      bar.value = NumberOf(column, row);
      bar.text = TextOf(column, row);
    }
    return Status::Ok();
  }

  Status End() override {
    const size_t width = options_.max_width > 0 ? options_.max_width : kUnknownWidth;
    size_t labels = 0, texts = DisplayWidth(NullText("NULL"));
    double least = 0, greatest = 0;
    for (const Bar& bar : bars_) {
      labels = std::max(labels, DisplayWidth(bar.label));
      texts = std::max(texts, bar.text.size());
      if (std::isfinite(bar.value)) least = std::min(least, bar.value);
      if (std::isfinite(bar.value)) greatest = std::max(greatest, bar.value);
    }
    labels = std::min(labels, width / 2);
    const size_t taken = labels + texts + 4, columns = width > taken + kLeastBar ? width - taken : kLeastBar;
    if (options_.headers && !bars_.empty()) buffer_ += std::string(labels, ' ') + "   " + Printable(name_) + "\n";
    for (const Bar& bar : bars_) {
      buffer_ += Padded(CutToWidth(bar.label, labels), labels) + " │ ";
      if (!bar.is_null && greatest > least) AppendBar(bar.value, least, greatest, columns);
      buffer_ += (bar.is_null ? NullText("NULL") : bar.text) + "\n";
      TESSERA_TRY(Flush());
    }
    return TextWriter::End();
  }

 private:
  struct Bar {
    std::string label, text;
    double value = 0;
    bool is_null = false;
  };

  /// From zero to the value, in eighths of a column.
  void AppendBar(double value, double least, double greatest, size_t columns) {
    constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (!std::isfinite(value)) return;
    const double scale = 8 * static_cast<double>(columns) / (greatest - least);
    const auto zero = static_cast<size_t>(std::lround(-least * scale)) / 8;
    if (value < 0) {
      const size_t bars = std::min(zero, static_cast<size_t>(std::lround(-value * scale)) / 8);
      buffer_ += std::string(zero - bars, ' ') + Repeated("█", bars) + " ";
      return;
    }
    const auto eighths = static_cast<size_t>(std::lround(value * scale));
    buffer_ += std::string(zero, ' ') + Repeated("█", eighths / 8);
    buffer_ += kEighths[eighths % 8];
    if (eighths > 0 || zero > 0) buffer_ += " ";
  }

  static constexpr size_t kMostBars = 10'000, kLeastBar = 10;

  size_t measured_ = SIZE_MAX;
  std::string name_;
  std::vector<Bar> bars_;
};

/// Dots of a terminal: two columns and four rows in each character (Unicode's Braille patterns).
class Dots {
 public:
  Dots(size_t columns, size_t rows) : columns_(columns), cells_(columns * rows) {}

  size_t width() const { return 2 * columns_; }
  size_t height() const { return 4 * (cells_.size() / columns_); }
  /// From the left, and from below.
  void Set(size_t x, size_t y) {
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const size_t down = height() - 1 - y;
    cells_[down / 4 * columns_ + x / 2] |= kBits[down % 4][x % 2];
  }
  std::string Row(size_t row) const {
    std::string out;
    for (size_t c = 0; c < columns_; ++c) {
      const uint8_t bits = cells_[row * columns_ + c];
      // U+2800 and more, in UTF-8.
      out += '\xE2';
      out += static_cast<char>(0xA0 | bits >> 6);
      out += static_cast<char>(0x80 | (bits & 0x3F));
    }
    return out;
  }

 private:
  const size_t columns_;
  std::vector<uint8_t> cells_;
};

class PlotText final : public TextWriter {
 public:
  using TextWriter::TextWriter;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    for (size_t c = 0; c < columns.size(); ++c) {
      const SqlType& type = columns[c].type;
      if (x_ == SIZE_MAX && (type.IsNumeric() || IsTime(type))) {
        x_ = c;
        x_name_ = columns[c].name;
      } else if (type.IsNumeric()) {
        series_.push_back({c, columns[c].name});
      }
    }
    if (series_.empty() && x_ != SIZE_MAX && columns[x_].type.IsNumeric()) {
      series_.push_back({x_, columns[x_].name});
      x_ = SIZE_MAX;
      x_name_ = "row";
    }
    if (!series_.empty()) return Status::Ok();
    return SqlError(ErrorKind::kDatatypeMismatch, "a plot needs a column of numbers", -1,
                    "The first column of numbers or times is x, the other numbers are y.");
  }

  Status Rows(RowBatch&& batch) override {
    for (size_t row = 0; row < batch.rows; ++row, ++rows_) {
      double x = static_cast<double>(rows_ + 1);
      if (x_ != SIZE_MAX) {
        const ColumnVector& column = batch.columns[x_];
        if (column.IsNull(row)) continue;
        x = NumberOf(column, row);
        if (!std::isfinite(x)) continue;
        horizontal_.Add(x, TextOf(column, row));
      } else {
        horizontal_.Add(x, fmt::format("{}", rows_ + 1));
      }
      for (Series& series : series_) {
        const ColumnVector& column = batch.columns[series.column];
        const double y = column.IsNull(row) ? NAN : NumberOf(column, row);
        if (std::isfinite(y)) vertical_.Add(y, TextOf(column, row));
        series.rises = series.rises && (series.points.empty() || x >= series.points.back().first);
        series.points.emplace_back(x, y);
      }
    }
    return Status::Ok();
  }

  Status End() override {
    if (!vertical_.any) return TextWriter::End();
    const size_t width = options_.max_width > 0 ? options_.max_width : kUnknownWidth;
    const size_t labels = std::max(DisplayWidth(vertical_.low_text), DisplayWidth(vertical_.high_text));
    Dots dots(width > labels + 3 + kLeastColumns ? width - labels - 3 : kLeastColumns, kRows);
    for (const Series& series : series_) Draw(series, &dots);
    std::string names;
    for (const Series& series : series_) names += (names.empty() ? "" : ", ") + Printable(series.name);
    if (options_.headers) buffer_ += std::string(labels + 3, ' ') + names + "\n";
    for (size_t row = 0; row < kRows; ++row) {
      const std::string label = row == 0 ? vertical_.high_text : row + 1 == kRows ? vertical_.low_text : "";
      buffer_ += std::string(labels - DisplayWidth(label), ' ') + label + " ┤ " + dots.Row(row) + "\n";
    }
    const size_t columns = dots.width() / 2,
                 ends = DisplayWidth(horizontal_.low_text) + DisplayWidth(horizontal_.high_text);
    buffer_ += std::string(labels + 3, ' ') + horizontal_.low_text;
    const std::string name = options_.headers ? Printable(x_name_) : "";
    const size_t free = columns > ends + DisplayWidth(name) ? columns - ends - DisplayWidth(name) : 2;
    buffer_ += std::string(std::max<size_t>(free / 2, 1), ' ') + name +
               std::string(std::max<size_t>(free - free / 2, 1), ' ') + horizontal_.high_text + "\n";
    return TextWriter::End();
  }

 private:
  /// The ends of an axis, and how they are written.
  struct Axis {
    bool any = false;
    double low = 0, high = 0;
    std::string low_text, high_text;

    void Add(double value, const std::string& text) {
      if (!any || value < low) {
        low = value;
        low_text = text;
      }
      if (!any || value > high) {
        high = value;
        high_text = text;
      }
      any = true;
    }
    /// The dot of a value; there are `dots`.
    size_t Place(double value, size_t dots) const {
      const double part = high > low ? (value - low) / (high - low) : 0.5;
      return std::min(dots - 1, static_cast<size_t>(part * static_cast<double>(dots - 1) + 0.5));
    }
  };
  struct Series {
    size_t column = 0;
    std::string name;
    std::vector<std::pair<double, double>> points = {};  ///< y: NaN where there is none
    bool rises = true;                                   ///< x does, from row to row
  };

  void Draw(const Series& series, Dots* dots) const {
    bool has_last = false;
    size_t last_x = 0, last_y = 0;
    for (const auto& [x_value, y_value] : series.points) {
      if (std::isnan(y_value) || !std::isfinite(y_value)) {
        has_last = false;
        continue;
      }
      const size_t x = horizontal_.Place(x_value, dots->width()), y = vertical_.Place(y_value, dots->height());
      dots->Set(x, y);
      // A line of single dots from the last point.
      const size_t across = x > last_x ? x - last_x : last_x - x, up = y > last_y ? y - last_y : last_y - y;
      const size_t steps = has_last && series.rises ? std::max(across, up) : 0;
      for (size_t i = 1; i < steps; ++i) {
        const double part = static_cast<double>(i) / static_cast<double>(steps);
        const auto between = [part](size_t from, size_t to) {
          return static_cast<size_t>(
              std::lround(static_cast<double>(from) * (1 - part) + static_cast<double>(to) * part));
        };
        dots->Set(between(last_x, x), between(last_y, y));
      }
      has_last = true;
      last_x = x;
      last_y = y;
    }
  }

  static constexpr size_t kRows = 16, kLeastColumns = 20;

  size_t x_ = SIZE_MAX;  ///< SIZE_MAX: the number of the row
  std::string x_name_;
  std::vector<Series> series_;
  Axis horizontal_, vertical_;
  uint64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<ResultWriter> MakeBarText(const ResultTextOptions& options, TextSink sink,
                                          std::function<void(const std::string&)> done) {
  return std::make_unique<BarText>(options, std::move(sink), std::move(done));
}

std::unique_ptr<ResultWriter> MakePlotText(const ResultTextOptions& options, TextSink sink,
                                           std::function<void(const std::string&)> done) {
  return std::make_unique<PlotText>(options, std::move(sink), std::move(done));
}

}  // namespace tessera
