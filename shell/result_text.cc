#include "shell/result_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>

#include "base/display_width.h"
#include "base/thread_pool.h"
#include "compiler/query/bound_query.h"
#include "shell/json_quotes.h"
#include "shell/plan_tree_text.h"
#include "shell/statistics_text.h"

namespace tessera {
namespace {

/// Text is handed on in pieces of about this many bytes.
constexpr size_t kPiece = 1 << 16;
/// Threads write a batch in parts of up to so many rows, if the first row says that these have not much more than kPiece bytes,
/// and so many parts each before their text is handed on. A batch with more bytes of TEXT is not shared.
constexpr size_t kMostRowsEach = 1024, kPartsEach = 4, kMostBytesShared = size_t{16} << 20;

struct FormatName {
  ResultFormat format;
  const char* name;
};
constexpr std::array<FormatName, 7> kFormats = {{{ResultFormat::kBox, "box"},
                                                 {ResultFormat::kColumn, "column"},
                                                 {ResultFormat::kCsv, "csv"},
                                                 {ResultFormat::kJson, "json"},
                                                 {ResultFormat::kLine, "line"},
                                                 {ResultFormat::kList, "list"},
                                                 {ResultFormat::kMarkdown, "markdown"}}};

/// A value of a batch, or what stands for NULL.
void AppendValue(const ColumnVector& column, size_t row, std::string_view null_text, std::string* out) {
  if (column.IsNull(row)) {
    *out += null_text;
  } else {
    AppendText(column, row, out);
  }
}

/// What the formats share: names, buffer, text and command tags.
class TextWriter : public ResultWriter {
 public:
  TextWriter(const ResultTextOptions& options, TextSink sink, std::function<void(const std::string&)> done)
      : options_(options), sink_(std::move(sink)), done_(std::move(done)) {}

  Status Done(const std::string& command_tag) override {
    if (done_) done_(command_tag);
    return Status::Ok();
  }
  Status Text(const std::string& text) override { return sink_(text); }
  Status Explained(const Explanation& explanation) override {
    return sink_(explanation.form->json ? PlanTreeJson(explanation) : PlanTreeText(explanation, options_.max_width));
  }
  Status Analyzed(const Analysis& analysis) override { return sink_("\n" + StatisticsText(analysis)); }
  Status End() override { return Flush(0); }
  void SetHelpers(ThreadPool* helpers) override { helpers_ = helpers; }

 protected:
  /// Hands the buffer on if it holds more than `limit` bytes.
  Status Flush(size_t limit = kPiece) {
    if (buffer_.size() <= limit) return Status::Ok();
    Status status = sink_(buffer_);
    buffer_.clear();
    return status;
  }
  std::string NullText(const char* otherwise) const { return options_.null_text.value_or(otherwise); }

  ThreadPool* helpers() const { return helpers_; }

  const ResultTextOptions options_;
  std::string buffer_;

 private:
  TextSink sink_;
  std::function<void(const std::string&)> done_;
  ThreadPool* helpers_ = nullptr;
};

/// Formats that write one row after the other.
class RowText : public TextWriter {
 public:
  using TextWriter::TextWriter;

  Status Rows(RowBatch&& batch) final {
    LookAt(batch);
    size_t bytes = 0;
    for (const ColumnVector& column : batch.columns) bytes += column.bytes.size();
    if (Workers(helpers()) > 1 && batch.rows > kMostRowsEach && bytes <= kMostBytesShared) {
      TESSERA_TRY(Share(batch));
    } else {
      for (size_t row = 0; row < batch.rows; ++row) {
        AppendRow(batch, row, &buffer_);
        TESSERA_TRY(Flush());
      }
    }
    rows_ += batch.rows;
    return Status::Ok();
  }

 protected:
  /// Before the rows of a batch.
  virtual void LookAt(const RowBatch&) {}
  /// Any thread.
  virtual void AppendRow(const RowBatch& batch, size_t row, std::string* out) const = 0;
  /// Whether it is the first of all rows.
  bool IsFirst(size_t row) const { return rows_ + row == 0; }

 private:
  /// Threads write the rows part by part. What they have written is handed on in order.
  Status Share(const RowBatch& batch) {
    std::string one;
    AppendRow(batch, 0, &one);
    const size_t rows_each = std::clamp<size_t>(kPiece / std::max<size_t>(one.size(), 1), 1, kMostRowsEach);
    std::vector<std::string> parts(Workers(helpers()) * kPartsEach);
    for (size_t at = 0; at < batch.rows; at += parts.size() * rows_each) {
      TESSERA_TRY(ForEach(helpers(), parts.size(), [&](size_t part) {
        const size_t first = std::min(batch.rows, at + part * rows_each), end = std::min(batch.rows, first + rows_each);
        std::string text;  // (Those of two threads in one cache line would be slow.)
        for (size_t row = first; row < end; ++row) AppendRow(batch, row, &text);
        parts[part] = std::move(text);
        return Status::Ok();
      }));
      for (const std::string& part : parts) {
        buffer_ += part;
        TESSERA_TRY(Flush());
      }
    }
    return Status::Ok();
  }

  uint64_t rows_ = 0;  ///< of earlier batches
};

class CsvText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    null_text_ = NullText("");
    if (!options_.separator.empty()) separator_ = options_.separator;
    is_plain_ = null_text_.empty() && separator_.find_first_of(",;|\t") != std::string::npos;
    if (!options_.headers) return Status::Ok();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) buffer_ += separator_;
      Field(columns[i].name, true, &buffer_);
    }
    buffer_ += '\n';
    return Status::Ok();
  }

 private:
  void LookAt(const RowBatch& batch) override {
    // Most columns have no such character: to look at all their texts at once takes less time than at one after the other.
    has_special_.clear();
    for (const ColumnVector& column : batch.columns) has_special_.push_back(HasSpecial(column.bytes));
  }
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      const ColumnVector& column = batch.columns[i];
      if (i > 0) *out += separator_;
      if (column.IsNull(row)) {
        *out += null_text_;
      } else if (column.type.id == TypeId::kText) {
        Field(column.Text(row), has_special_[i] != 0, out);
      } else if (is_plain_ && column.type.id != TypeId::kEnum) {
        AppendText(column, row, out);  // numbers and dates need no quotes
      } else {
        std::string text;
        AppendText(column, row, &text);
        Field(text, true, out);
      }
    }
    *out += '\n';
  }
  /// (std::string_view::find_first_of looks up each character with a call; a loop over four comparisons has branches.)
  bool HasSpecial(std::string_view text) const {
    const auto has = [&](char c) { return memchr(text.data(), c, text.size()) != nullptr; };
    const auto has_separator = [&] {
      return separator_.size() == 1 ? has(separator_[0]) : text.find(separator_) != std::string_view::npos;
    };
    return !text.empty() && (has_separator() || has('"') || has('\r') || has('\n'));
  }
  void Field(std::string_view text, bool may_be_special, std::string* out) const {
    if (!text.empty() && !(may_be_special && HasSpecial(text)) && text != null_text_) {
      *out += text;
      return;
    }
    *out += '"';
    for (char c : text) {
      if (c == '"') *out += '"';
      *out += c;
    }
    *out += '"';
  }

  std::string null_text_, separator_ = ",";
  bool is_plain_ = true;              ///< no number is as NULL, or has the separator in it
  std::vector<uint8_t> has_special_;  ///< by column of the batch
};

class ListText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    null_text_ = NullText("");
    if (!options_.separator.empty()) separator_ = options_.separator;
    if (!options_.headers) return Status::Ok();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) buffer_ += separator_;
      buffer_ += columns[i].name;
    }
    buffer_ += '\n';
    return Status::Ok();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      if (i > 0) *out += separator_;
      AppendValue(batch.columns[i], row, null_text_, out);
    }
    *out += '\n';
  }

  std::string null_text_, separator_ = "|";
};

class JsonText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    for (const vm::ResultColumn& c : columns) {
      std::string key;
      AppendInJsonQuotes(c.name, &key);
      keys_.push_back(key + ':');
    }
    buffer_ += '[';
    return Status::Ok();
  }
  Status End() override {
    buffer_ += "]\n";
    return TextWriter::End();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    *out += IsFirst(row) ? "{" : ",\n{";
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      if (i > 0) *out += ',';
      *out += keys_[i];
      AppendJson(batch.columns[i], row, out);
    }
    *out += '}';
  }
  static void AppendJson(const ColumnVector& column, size_t row, std::string* out) {
    if (column.IsNull(row)) {
      *out += "null";
    } else if (column.type.id == TypeId::kText) {
      AppendInJsonQuotes(column.Text(row), out);
    } else if (column.type.id == TypeId::kBytea) {
      std::string text;
      AppendText(column, row, &text);
      AppendInJsonQuotes(text, out);
    } else if (column.type.IsNumeric() && !(column.type.IsFloat() && !std::isfinite(column.Float(row)))) {
      AppendText(column, row, out);
    } else if (column.type.id == TypeId::kBoolean) {
      *out += column.fixed[row] != 0 ? "true" : "false";
    } else {
      *out += '"';
      AppendText(column, row, out);
      *out += '"';
    }
  }

  std::vector<std::string> keys_;
};

class MarkdownText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    null_text_ = NullText("");
    if (!options_.headers) return Status::Ok();
    buffer_ += '|';
    for (const vm::ResultColumn& c : columns) Cell(c.name, &buffer_);
    buffer_ += "\n|";
    for (const vm::ResultColumn& c : columns) buffer_ += c.type.IsNumeric() ? " ---: |" : " --- |";
    buffer_ += '\n';
    return Status::Ok();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    std::string text;
    *out += '|';
    for (const ColumnVector& column : batch.columns) {
      text.clear();
      AppendValue(column, row, null_text_, &text);
      Cell(text, out);
    }
    *out += '\n';
  }
  static void Cell(std::string_view text, std::string* out) {
    *out += ' ';
    for (char c : ValidUtf8(text)) {
      if (c == '|') {
        *out += "\\|";
      } else if (c == '\n') {
        *out += "<br>";
      } else if (c != '\r') {
        *out += c;
      }
    }
    *out += " |";
  }

  std::string null_text_;
};

class LineText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    null_text_ = NullText("NULL");
    size_t width = 0;
    for (const vm::ResultColumn& c : columns) width = std::max(width, DisplayWidth(Printable(c.name)));
    for (const vm::ResultColumn& c : columns) {
      const std::string name = Printable(c.name);
      names_.push_back(std::string(width - DisplayWidth(name), ' ') + name + " = ");
    }
    return Status::Ok();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    if (!IsFirst(row)) *out += '\n';
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      *out += names_[i];
      AppendValue(batch.columns[i], row, null_text_, out);
      *out += '\n';
    }
  }

  std::vector<std::string> names_;
  std::string null_text_;
};

/// box and column.
class BoxText final : public TextWriter {
 public:
  BoxText(const ResultTextOptions& options, TextSink sink, std::function<void(const std::string&)> done)
      : TextWriter(options, std::move(sink), std::move(done)), framed_(options.format == ResultFormat::kBox) {}

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
        AppendValue(column, row, null_text, &text);
        cells.push_back(column.type.storage() == StorageClass::kText || column.IsNull(row) ? Printable(text) : text);
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
    Rule("┌", "┬", "┐");
    if (options_.headers) {
      for (size_t i = 0; i < names_.size(); ++i) Cell(i, names_[i], !framed_ && right_[i]);
      EndRow();
      Rule("├", "┼", "┤");
    }
    for (const std::vector<std::string>& cells : head_) TESSERA_TRY(Row(cells));
    if (elided) {
      for (size_t i = 0; i < names_.size(); ++i) Cell(i, "·", right_[i]);
      EndRow();
    }
    for (const std::vector<std::string>& cells : tail_) TESSERA_TRY(Row(cells));
    Rule("└", "┴", "┘");
    if (elided) buffer_ += fmt::format("{} rows ({} shown)\n", rows_, head_.size() + tail_.size());
    return TextWriter::End();
  }

 private:
  enum class Kind : uint8_t { kNumber, kText, kOther };

  Status Row(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) Cell(i, cells[i], right_[i]);
    EndRow();
    return Flush();
  }
  void Cell(size_t column, std::string_view text, bool right) {
    const std::string cut = CutToWidth(text, widths_[column]);
    const std::string blanks(widths_[column] - std::min(widths_[column], DisplayWidth(cut)), ' ');
    buffer_ += framed_ ? "│ " : column > 0 ? kGap : "";
    if (right) buffer_ += blanks;
    buffer_ += cut;
    if (!right && (framed_ || column + 1 < names_.size())) buffer_ += blanks;
    if (framed_) buffer_ += ' ';
  }
  void EndRow() { buffer_ += framed_ ? "│\n" : "\n"; }
  /// Without a frame there is the one below the names only.
  void Rule(const char* left, const char* middle, const char* right) {
    const bool is_inner = std::string_view(left) == "├";
    if (!framed_ && !is_inner) return;
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (framed_) buffer_ += i == 0 ? left : middle;
      if (!framed_ && i > 0) buffer_ += kGap;
      for (size_t k = 0; k < widths_[i] + (framed_ ? 2 : 0); ++k) buffer_ += framed_ ? "─" : "-";
    }
    if (framed_) buffer_ += right;
    buffer_ += '\n';
  }
  void Widths(bool elided) {
    widths_.assign(names_.size(), elided ? 1 : 0);
    for (size_t i = 0; i < names_.size(); ++i) {
      for (const auto& cells : head_) widths_[i] = std::max(widths_[i], DisplayWidth(cells[i]));
      for (const auto& cells : tail_) widths_[i] = std::max(widths_[i], DisplayWidth(cells[i]));
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
    if (options_.max_width == 0 || Shrink(least)) return;
    // Then dates and others. Numbers are never cut: half a number is a wrong one.
    for (size_t i = 0; i < names_.size(); ++i) {
      if (kinds_[i] == Kind::kOther) least[i] = kLeastWidth;
    }
    (void)Shrink(least);
  }
  /// The widest column gives way first. False if all have their least width, and are still too wide.
  bool Shrink(const std::vector<size_t>& least) {
    for (;;) {
      size_t total = framed_ ? 1 : 0, widest = SIZE_MAX;
      for (size_t i = 0; i < widths_.size(); ++i) {
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

  const bool framed_;
  std::vector<Kind> kinds_;
  std::vector<std::string> names_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> head_;
  std::deque<std::vector<std::string>> tail_;
  uint64_t rows_ = 0;
  std::vector<size_t> widths_;
};

}  // namespace

std::optional<ResultFormat> FindResultFormat(std::string_view name) {
  for (const FormatName& f : kFormats) {
    if (name == f.name) return f.format;
  }
  return std::nullopt;
}

const char* ResultFormatName(ResultFormat format) {
  for (const FormatName& f : kFormats) {
    if (format == f.format) return f.name;
  }
  return "?";
}

std::string ResultFormatNames() {
  std::string out;
  for (const FormatName& f : kFormats) out += (out.empty() ? "" : ", ") + std::string(f.name);
  return out;
}

bool IsColumnSeparator(std::string_view text) {
  return !text.empty() && text.find_first_of("\"\r\n") == std::string_view::npos;
}

std::unique_ptr<ResultWriter> MakeResultText(const ResultTextOptions& options, TextSink sink,
                                             std::function<void(const std::string&)> done) {
  switch (options.format) {
    case ResultFormat::kBox:
    case ResultFormat::kColumn:
      return std::make_unique<BoxText>(options, std::move(sink), std::move(done));
    case ResultFormat::kJson:
      return std::make_unique<JsonText>(options, std::move(sink), std::move(done));
    case ResultFormat::kMarkdown:
      return std::make_unique<MarkdownText>(options, std::move(sink), std::move(done));
    case ResultFormat::kLine:
      return std::make_unique<LineText>(options, std::move(sink), std::move(done));
    case ResultFormat::kList:
      return std::make_unique<ListText>(options, std::move(sink), std::move(done));
    case ResultFormat::kCsv:
      break;
  }
  return std::make_unique<CsvText>(options, std::move(sink), std::move(done));
}

}  // namespace tessera
