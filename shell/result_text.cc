#include "shell/result_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/display_width.h"
#include "compiler/query/schema_text.h"
#include "shell/json_quotes.h"
#include "shell/result_box.h"
#include "shell/result_chart.h"
#include "shell/text_writer.h"

namespace tessera {
namespace {

struct FormatName {
  ResultFormat format;
  const char* name;
};
constexpr FormatName kFormats[] = {
    {ResultFormat::kBar, "bar"},           {ResultFormat::kBox, "box"},
    {ResultFormat::kColumn, "column"},     {ResultFormat::kCsv, "csv"},
    {ResultFormat::kHtml, "html"},         {ResultFormat::kInsert, "insert"},
    {ResultFormat::kJson, "json"},         {ResultFormat::kJsonLines, "jsonlines"},
    {ResultFormat::kLine, "line"},         {ResultFormat::kList, "list"},
    {ResultFormat::kMarkdown, "markdown"}, {ResultFormat::kPlot, "plot"},
    {ResultFormat::kQuote, "quote"},       {ResultFormat::kTable, "table"},
    {ResultFormat::kTrash, "trash"},       {ResultFormat::kTsv, "tsv"},
};
/// What sqlite3, duckdb and psql call them.
constexpr FormatName kOtherNames[] = {{ResultFormat::kBox, "duckbox"},
                                      {ResultFormat::kColumn, "columns"},
                                      {ResultFormat::kJsonLines, "ndjson"},
                                      {ResultFormat::kLine, "lines"},
                                      {ResultFormat::kTsv, "tabs"}};

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

/// json and jsonlines.
class JsonText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    for (const vm::ResultColumn& c : columns) {
      std::string key;
      AppendInJsonQuotes(c.name, &key);
      keys_.push_back(key + ':');
    }
    if (!by_lines_) buffer_ += '[';
    return Status::Ok();
  }
  Status End() override {
    if (!by_lines_) buffer_ += "]\n";
    return TextWriter::End();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    *out += by_lines_ || IsFirst(row) ? "{" : ",\n{";
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      if (i > 0) *out += ',';
      *out += keys_[i];
      AppendJson(batch.columns[i], row, out);
    }
    *out += by_lines_ ? "}\n" : "}";
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

  const bool by_lines_ = options_.format == ResultFormat::kJsonLines;
  std::vector<std::string> keys_;
};

/// A value as SQL writes it.
void AppendLiteral(const ColumnVector& column, size_t row, std::string* out) {
  if (column.IsNull(row)) {
    *out += "NULL";
    return;
  }
  const bool is_plain = column.type.id == TypeId::kBoolean ||
                        (column.type.IsNumeric() && !(column.type.IsFloat() && !std::isfinite(column.Float(row))));
  std::string text;
  AppendText(column, row, &text);
  *out += is_plain ? text : QuotedText(text);
}

/// insert and quote.
class LiteralText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    if (inserts_ || !options_.headers) return Status::Ok();
    for (size_t i = 0; i < columns.size(); ++i) buffer_ += (i > 0 ? "," : "") + QuotedText(columns[i].name);
    buffer_ += '\n';
    return Status::Ok();
  }
  Status End() override {
    if (inserts_ && RowNumber(0) > 0) buffer_ += ";\n";
    return TextWriter::End();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    if (inserts_) {
      const bool begins = RowNumber(row) % options_.rows_of_insert == 0;
      if (RowNumber(row) > 0) *out += begins ? ";\n" : ",\n";
      if (begins) *out += "INSERT INTO " + table_ + (options_.rows_of_insert > 1 ? " VALUES\n" : " VALUES ");
      *out += '(';
    }
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      if (i > 0) *out += inserts_ ? ", " : ",";
      AppendLiteral(batch.columns[i], row, out);
    }
    *out += inserts_ ? ")" : "\n";
  }

  const bool inserts_ = options_.format == ResultFormat::kInsert;
  const std::string table_ = options_.table.empty() ? "\"table\"" : options_.table;
};

class TsvText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    null_text_ = NullText("");
    if (!options_.headers) return Status::Ok();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) buffer_ += '\t';
      Field(columns[i].name, &buffer_);
    }
    buffer_ += '\n';
    return Status::Ok();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    std::string text;
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      if (i > 0) *out += '\t';
      if (batch.columns[i].IsNull(row)) {
        *out += null_text_;
        continue;
      }
      text.clear();
      AppendText(batch.columns[i], row, &text);
      Field(text, out);
    }
    *out += '\n';
  }
  static void Field(std::string_view text, std::string* out) {
    for (const char c : text) {
      if (c != '\t' && c != '\n' && c != '\r' && c != '\\') {
        *out += c;
        continue;
      }
      *out += '\\';
      *out += c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : c;
    }
  }

  std::string null_text_;
};

class HtmlText final : public RowText {
 public:
  using RowText::RowText;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    null_text_ = NullText("NULL");
    buffer_ += "<table>\n";
    if (!options_.headers) return Status::Ok();
    buffer_ += "<tr>";
    for (const vm::ResultColumn& c : columns) Cell("th", c.name, &buffer_);
    buffer_ += "</tr>\n";
    return Status::Ok();
  }
  Status End() override {
    buffer_ += "</table>\n";
    return TextWriter::End();
  }

 private:
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const override {
    std::string text;
    *out += "<tr>";
    for (const ColumnVector& column : batch.columns) {
      text.clear();
      AppendValue(column, row, null_text_, &text);
      Cell("td", text, out);
    }
    *out += "</tr>\n";
  }
  static void Cell(std::string_view tag, std::string_view text, std::string* out) {
    *out += fmt::format("<{}>", tag);
    for (const char c : ValidUtf8(text)) {
      if (c == '&') {
        *out += "&amp;";
      } else if (c == '<') {
        *out += "&lt;";
      } else if (c == '>') {
        *out += "&gt;";
      } else {
        *out += c;
      }
    }
    *out += fmt::format("</{}>", tag);
  }

  std::string null_text_;
};

/// Rows are made, and nothing is shown of them.
class TrashText final : public TextWriter {
 public:
  using TextWriter::TextWriter;
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&&) override { return Status::Ok(); }
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

}  // namespace

std::optional<ResultFormat> FindResultFormat(std::string_view name) {
  for (const FormatName& f : kFormats) {
    if (name == f.name) return f.format;
  }
  for (const FormatName& f : kOtherNames) {
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

std::vector<std::string> ResultFormatWords() {
  std::vector<std::string> words;
  for (const FormatName& f : kFormats) words.emplace_back(f.name);
  for (const FormatName& f : kOtherNames) words.emplace_back(f.name);
  return words;
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
    case ResultFormat::kBar:
      return MakeBarText(options, std::move(sink), std::move(done));
    case ResultFormat::kPlot:
      return MakePlotText(options, std::move(sink), std::move(done));
    case ResultFormat::kBox:
    case ResultFormat::kColumn:
    case ResultFormat::kTable:
      return MakeBoxText(options, std::move(sink), std::move(done));
    case ResultFormat::kHtml:
      return std::make_unique<HtmlText>(options, std::move(sink), std::move(done));
    case ResultFormat::kInsert:
    case ResultFormat::kQuote:
      return std::make_unique<LiteralText>(options, std::move(sink), std::move(done));
    case ResultFormat::kJson:
    case ResultFormat::kJsonLines:
      return std::make_unique<JsonText>(options, std::move(sink), std::move(done));
    case ResultFormat::kMarkdown:
      return std::make_unique<MarkdownText>(options, std::move(sink), std::move(done));
    case ResultFormat::kLine:
      return std::make_unique<LineText>(options, std::move(sink), std::move(done));
    case ResultFormat::kList:
      return std::make_unique<ListText>(options, std::move(sink), std::move(done));
    case ResultFormat::kTrash:
      return std::make_unique<TrashText>(options, std::move(sink), std::move(done));
    case ResultFormat::kTsv:
      return std::make_unique<TsvText>(options, std::move(sink), std::move(done));
    case ResultFormat::kCsv:
      break;
  }
  return std::make_unique<CsvText>(options, std::move(sink), std::move(done));
}

}  // namespace tessera
