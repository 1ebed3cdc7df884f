#include "shell/result_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "base/display_width.h"
#include "shell/text_writer.h"

namespace tessera {
namespace {

/// box, table and column.
class BoxText final : public TextWriter {
 public:
  BoxText(const ResultTextOptions& options, TextSink sink, std::function<void(const std::string&)> done)
      : TextWriter(options, std::move(sink), std::move(done)),
        framed_(options.format != ResultFormat::kColumn),
        lines_(options.format == ResultFormat::kTable ? kPlainLines : kBoxLines) {}

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    for (size_t i = 0; i < columns.size(); ++i) {
      const int width = i < options_.widths.size() ? options_.widths[i] : 0;
      right_.push_back(width < 0 || (width == 0 && columns[i].type.IsNumeric()));
      kinds_.push_back(columns[i].type.IsNumeric()                        ? Kind::kNumber
                       : columns[i].type.storage() == StorageClass::kText ? Kind::kText
                                                                          : Kind::kOther);
      names_.push_back(Printable(columns[i].name));
    }
    return Status::Ok();
  }
  Status Rows(RowBatch&& batch) override {
    const std::string null_text = NullText("NULL");
    // Head and tail of a long result are kept, the middle is only counted.
    const size_t head = options_.max_rows == 0 ? SIZE_MAX : (options_.max_rows + 1) / 2;
    const size_t tail = options_.max_rows / 2;
    std::string text;
    for (size_t row = 0; row < batch.rows; ++row, ++rows_) {
      // A batch may be longer than the box: no cell is made that the next ones would push out again.
      if (options_.max_rows > 0 && head_.size() >= head && batch.rows - row > tail && tail_.size() >= tail) {
        const size_t skip = batch.rows - row - tail;
        row += skip;
        rows_ += skip;
        if (row >= batch.rows) break;
      }
      std::vector<std::string> cells;
      cells.reserve(batch.columns.size());
      for (const ColumnVector& column : batch.columns) {
        text.clear();
        if (column.IsNull(row)) {
          cells.push_back((options_.colors ? kNullMark : "") + Printable(null_text));
          continue;
        }
        AppendText(column, row, &text);
        cells.push_back(column.type.storage() == StorageClass::kText ? Printable(text) : text);
      }
      if (head_.size() < head) {
        head_.push_back(std::move(cells));
      } else {
        tail_.push_back(std::move(cells));
        if (tail_.size() > tail) tail_.pop_front();
      }
    }
    return Status::Ok();
  }
  Status End() override {
    if (names_.empty()) return Status::Ok();
    const bool elided = rows_ > head_.size() + tail_.size();
    Widths(elided);
    Rule(lines_.top);
    if (options_.headers) {
      for (size_t i = 0; i < names_.size(); ++i) Cell(i, names_[i], !framed_ && right_[i]);
      EndRow();
      Rule(lines_.inner);
    }
    for (const std::vector<std::string>& cells : head_) TESSERA_TRY(Row(cells));
    if (elided) {
      for (size_t i = 0; i < names_.size(); ++i) Cell(i, "·", right_[i]);
      EndRow();
    }
    for (const std::vector<std::string>& cells : tail_) TESSERA_TRY(Row(cells));
    Rule(lines_.bottom);
    if (elided) buffer_ += fmt::format("{} rows ({} shown)", rows_, head_.size() + tail_.size());
    if (hidden_ < hidden_end_) {
      buffer_ += fmt::format("{}{} columns ({} shown)", elided ? ", " : "", names_.size(),
                             names_.size() - (hidden_end_ - hidden_));
    }
    if (elided || hidden_ < hidden_end_) buffer_ += '\n';
    return TextWriter::End();
  }

 private:
  enum class Kind : uint8_t { kNumber, kText, kOther };
  /// Left end, between columns, right end.
  using RuleEnds = std::array<const char*, 3>;
  struct Lines {
    RuleEnds top, inner, bottom;
    const char* across;
    const char* down;
  };
  static constexpr Lines kBoxLines = {{"┌", "┬", "┐"}, {"├", "┼", "┤"}, {"└", "┴", "┘"}, "─", "│"};
  static constexpr Lines kPlainLines = {{"+", "+", "+"}, {"+", "+", "+"}, {"+", "+", "+"}, "-", "|"};

  /// Before the text of a NULL that is to be told from other texts: no printable text begins so.
  inline static const std::string kNullMark = std::string(1, '\0');
  static bool IsNullMark(std::string_view cell) { return !cell.empty() && cell[0] == 0; }
  static size_t WidthOf(std::string_view cell) { return DisplayWidth(cell.substr(IsNullMark(cell) ? 1 : 0)); }

  Status Row(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) Cell(i, cells[i], right_[i]);
    EndRow();
    return Flush();
  }
  void Cell(size_t column, std::string_view text, bool right) {
    if (column >= hidden_ && column < hidden_end_) {
      if (column > hidden_) return;
      text = "…";  // in place of them all
    }
    const bool is_null = IsNullMark(text);
    const std::string cut = CutToWidth(text.substr(is_null ? 1 : 0), widths_[column]);
    const std::string blanks(widths_[column] - std::min(widths_[column], DisplayWidth(cut)), ' ');
    if (framed_) {
      buffer_ += lines_.down;
      buffer_ += ' ';
    } else if (column > 0) {
      buffer_ += kGap;
    }
    if (right) buffer_ += blanks;
    if (is_null) buffer_ += kDim;
    buffer_ += cut;
    if (is_null) buffer_ += kPlain;
    if (!right && (framed_ || column + 1 < names_.size())) buffer_ += blanks;
    if (framed_) buffer_ += ' ';
  }
  void EndRow() { buffer_ += framed_ ? std::string(lines_.down) + "\n" : "\n"; }
  /// Without a frame there is the one below the names only.
  void Rule(const RuleEnds& ends) {
    if (!framed_ && &ends != &lines_.inner) return;
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (i > hidden_ && i < hidden_end_) continue;
      if (framed_) buffer_ += ends[i == 0 ? 0 : 1];
      if (!framed_ && i > 0) buffer_ += kGap;
      for (size_t k = 0; k < widths_[i] + (framed_ ? 2 : 0); ++k) buffer_ += framed_ ? lines_.across : "-";
    }
    if (framed_) buffer_ += ends[2];
    buffer_ += '\n';
  }
  void Widths(bool elided) {
    widths_.assign(names_.size(), elided ? 1 : 0);
    for (size_t i = 0; i < names_.size(); ++i) {
      for (const auto& cells : head_) widths_[i] = std::max(widths_[i], WidthOf(cells[i]));
      for (const auto& cells : tail_) widths_[i] = std::max(widths_[i], WidthOf(cells[i]));
      widths_[i] = std::max<size_t>(widths_[i], 1);
    }
    // Texts give way first, and names of columns are texts.
    std::vector<size_t> least(names_.size(), kLeastWidth);
    for (size_t i = 0; i < names_.size(); ++i) {
      const int fixed = i < options_.widths.size() ? std::abs(options_.widths[i]) : 0;
      if (fixed > 0) {
        widths_[i] = least[i] = static_cast<size_t>(fixed);
        kinds_[i] = Kind::kNumber;  // it stays
        continue;
      }
      if (kinds_[i] != Kind::kText) least[i] = std::max(kLeastWidth, widths_[i]);
      if (options_.headers) widths_[i] = std::max(widths_[i], DisplayWidth(names_[i]));
    }
    if (options_.max_width == 0) return;
    const std::vector<size_t> wanted = widths_;
    if (Shrink(least)) return;
    // Then dates and others. Numbers are never cut: half a number is a wrong one.
    const std::vector<size_t> least_with_dates = least;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (kinds_[i] == Kind::kOther) least[i] = kLeastWidth;
    }
    if (Shrink(least)) return;
    // Then whole columns are left out, from the middle; the others have more room again.
    for (size_t shown = names_.size() - 1; shown > 0; --shown) {
      hidden_ = (shown + 1) / 2;
      hidden_end_ = names_.size() - shown / 2;
      for (const std::vector<size_t>& limit : {least_with_dates, least}) {
        widths_ = wanted;
        widths_[hidden_] = 1;
        if (Shrink(limit)) return;
      }
    }
  }
  /// The widest column gives way first. False if all have their least width, and are still too wide.
  bool Shrink(const std::vector<size_t>& least) {
    for (;;) {
      size_t total = framed_ ? 1 : 0, widest = SIZE_MAX;
      for (size_t i = 0; i < widths_.size(); ++i) {
        if (i > hidden_ && i < hidden_end_) continue;
        total += widths_[i] + (framed_ ? 3 : i > 0 ? std::strlen(kGap) : 0);
        if (widths_[i] > least[i] && (widest == SIZE_MAX || widths_[i] > widths_[widest])) widest = i;
      }
      if (total <= options_.max_width) return true;
      if (widest == SIZE_MAX) return false;
      --widths_[widest];
    }
  }

  static constexpr size_t kLeastWidth = 8;
  static constexpr const char* kGap = "  ";
  static constexpr const char *kDim = "\x1b[2m", *kPlain = "\x1b[0m";

  const bool framed_;
  const Lines& lines_;
  size_t hidden_ = SIZE_MAX, hidden_end_ = 0;  ///< columns that are left out
  std::vector<Kind> kinds_;
  std::vector<std::string> names_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> head_;
  std::deque<std::vector<std::string>> tail_;
  uint64_t rows_ = 0;
  std::vector<size_t> widths_;
};

}  // namespace

std::unique_ptr<ResultWriter> MakeBoxText(const ResultTextOptions& options, TextSink sink,
                                          std::function<void(const std::string&)> done) {
  return std::make_unique<BoxText>(options, std::move(sink), std::move(done));
}

}  // namespace tessera
