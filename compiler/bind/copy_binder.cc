#include "compiler/bind/copy_binder.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "compiler/bind/bind_view.h"
#include "compiler/bind/copy_columnar.h"
#include "compiler/bind/copy_partition.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/populated_check.h"
#include "compiler/bind/query_binder.h"
#include "compiler/bind/relation_name.h"
#include "compiler/bind/row_rules.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/parse/statement_option.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/csv/file_signature.h"
#include "tablet/load/file_spec.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// An option of COPY that is one byte.
Status ByteOption(const ParseNode& option, const char* what, char* out) {
  std::string text = OptionText(option);
  if (text == "\\t") text = "\t";  // people type it, although '\t' is no tab in SQL
  if (text.size() != 1)
    return SqlError(ErrorKind::kInvalidParameterValue,
                    std::string("COPY ") + what + " must be a single one-byte character", option.location());
  if (text[0] == '\n' || text[0] == '\r') {
    return SqlError(ErrorKind::kInvalidParameterValue,
                    std::string("COPY ") + what + " cannot be newline or carriage return", option.location());
  }
  *out = text[0];
  return {};
}

struct CopyOptions {
  CopyFromOptions from;         ///< COPY TO takes its format alone
  bool header_matches = false;  ///< an error if it does not
};

Status CheckTextFormat(const CopyFormat& format, int position) {
  const char delimiter = format.has_delimiter ? format.delimiter : '\t';
  if (delimiter == '\\' || delimiter == '.' || std::isalnum(static_cast<unsigned char>(delimiter)) != 0) {
    return SqlError(ErrorKind::kInvalidParameterValue, std::string("COPY delimiter cannot be \"") + delimiter + "\"",
                    position);
  }
  if (format.null_string.find(delimiter) == std::string::npos) return {};
  return SqlError(ErrorKind::kInvalidParameterValue,
                  "COPY delimiter character must not appear in the NULL specification", position);
}

/// An option of COPY FROM alone. False: it is none.
Result<bool> BindReadOption(const std::string& name, const ParseNode& option, CopyFromOptions* reads) {
  const std::string text = OptionText(option);
  if (name == "skip") {
    const bool is_number =
        !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) return SqlError("COPY skip takes a number of lines", option.location());
    reads->skip_lines = std::stoull(text);
  } else if (name == "dateformat" || name == "date_format") {
    reads->date_format = text;
  } else if (name == "timestampformat" || name == "timestamp_format") {
    reads->timestamp_format = text;
  } else if (name == "decimal_separator") {
    TESSERA_TRY(ByteOption(option, "decimal separator", &reads->decimal));
  } else if (name == "thousands") {
    TESSERA_TRY(ByteOption(option, "thousands separator", &reads->thousands));
  } else if (name == "on_error") {
    const std::string word = LowerCase(text);
    if (word != "stop" && word != "ignore")
      return SqlError("COPY ON_ERROR \"" + word + "\" not recognized", option.location(), "It is stop or ignore.");
    reads->ignore_errors = word == "ignore";
  } else if (name == "ignore_errors") {
    TESSERA_ASSIGN(reads->ignore_errors, BooleanOption(option));
  } else {
    return false;
  }
  return true;
}

/// FORMAT of what is not Parquet, Arrow or JSON.
Status ReadForm(const ParseNode& option, bool has_file, CopyFormat* format) {
  const std::string text = LowerCase(OptionText(option));
  if ((text == "binary" || text == "text") && has_file) {
    return Unsupported("COPY format \"" + text + "\" is not supported", option.location(),
                       "Formats are csv, parquet and arrow; DELIMITER and NULL of csv can be chosen.");
  }
  if (text != "csv" && text != "text" && text != "binary") {
    return SqlError(ErrorKind::kInvalidParameterValue, "COPY format \"" + text + "\" not recognized",
                    option.location());
  }
  format->form = text == "csv" ? CopyForm::kCsv : text == "text" ? CopyForm::kText : CopyForm::kBinary;
  return {};
}

Status CheckBinaryFormat(const CopyFormat& format, bool has_quotes, int position) {
  if (!format.has_delimiter && !format.has_null && !format.header && !has_quotes) return {};
  return SqlError(ErrorKind::kSyntax, "COPY (FORMAT binary) takes no delimiter, null, header, quote or escape",
                  position);
}

Status BindCopyOptions(const ParseNode* options, bool is_from, bool has_file, CopyOptions* out) {
  CopyFormat* const format = &out->from.format;
  bool has_escape = false;
  int delimiter_position = -1, csv_option = -1;
  if (options != nullptr) {
    for (const ParseNode& option : *options) {
      const std::string name = LowerCase(option.Text(Field::k_defname));
      const int position = option.location();
      if (name == "quote" || name == "escape") csv_option = position;
      if (name == "format") {
        TESSERA_TRY(ReadForm(option, has_file, format));
      } else if (name == "delimiter" || name == "delim" || name == "sep") {
        TESSERA_TRY(ByteOption(option, "delimiter", &format->delimiter));
        delimiter_position = position;
      } else if (name == "header") {
        const std::string text = LowerCase(OptionText(option));
        out->header_matches = text == "match";
        if (out->header_matches && !is_from) return SqlError("cannot use \"match\" with HEADER in COPY TO", position);
        format->header = true;
        if (!out->header_matches) {
          TESSERA_ASSIGN(format->header, BooleanOption(option));
        }
      } else if (name == "null" || name == "nullstr") {
        format->null_string = OptionText(option);
        format->has_null = true;
        if (format->null_string.find_first_of("\r\n") != std::string::npos) {
          return SqlError(ErrorKind::kInvalidParameterValue,
                          "COPY null representation cannot use newline or carriage return", position);
        }
        // At the head of a file it would be taken for the file's own.
        if (format->null_string.starts_with("\xEF\xBB\xBF")) {
          return SqlError(ErrorKind::kInvalidParameterValue,
                          "COPY null representation cannot begin with a byte order mark", position);
        }
      } else if (name == "quote") {
        TESSERA_TRY(ByteOption(option, "quote", &format->quote));
      } else if (name == "escape") {
        TESSERA_TRY(ByteOption(option, "escape", &format->escape));
        has_escape = true;
      } else if (name == "encoding") {
        const std::string text = LowerCase(OptionText(option));
        const std::optional<TextEncoding> encoding = EncodingNamed(text);
        if (!encoding) return Unsupported("COPY encoding \"" + text + "\" is not supported", position, kEncodings);
        if (!is_from && *encoding != TextEncoding::kUtf8)
          return Unsupported("COPY TO in encoding \"" + text + "\" is not supported", position, "It writes UTF-8.");
        out->from.encoding = *encoding;
      } else {
        TESSERA_ASSIGN(const bool reads, BindReadOption(name, option, &out->from));
        if (reads && !is_from) return SqlError("COPY " + name + " is for COPY FROM only", position);
        if (reads || (!is_from && name == "partition_by")) continue;  // (copy_partition.h)
        return Unsupported("COPY option \"" + name + "\" is not supported", position);
      }
    }
  }
  format->has_delimiter = delimiter_position >= 0;
  if (format->form == CopyForm::kBinary)
    return CheckBinaryFormat(*format, csv_option >= 0, options->first()->location());
  if (format->form == CopyForm::kText) {
    if (csv_option >= 0) return SqlError("COPY quote and escape are for the csv format only", csv_option);
    return CheckTextFormat(*format, delimiter_position);
  }
  if (!has_escape) format->escape = format->quote;
  if (format->delimiter == format->quote)
    return SqlError(ErrorKind::kInvalidParameterValue, "COPY delimiter and quote must be different",
                    delimiter_position);
  if (format->null_string.find(format->delimiter) != std::string::npos) {
    return SqlError(ErrorKind::kInvalidParameterValue,
                    "COPY delimiter character must not appear in the NULL specification", delimiter_position);
  }
  if (format->null_string.find(format->quote) != std::string::npos) {
    return SqlError(ErrorKind::kInvalidParameterValue, "CSV quote character must not appear in the NULL specification",
                    delimiter_position);
  }
  return {};
}

/// Refuses a file whose name promises another format than CSV. A file that is read tells by its first bytes whether it is
/// compressed or binary, so that one that was named wrongly can still be loaded; JSON does not tell.
Status CheckFileName(const std::string& file, bool is_from, int position) {
  const FilePromise* const promise = FindPromise(file);
  if (promise == nullptr || (is_from && !promise->is_text)) return {};
  std::string hint = "Give the file another name.";
  if (promise->compress != nullptr) {
    hint =
        std::string("Give the file another name, or compress it on the way: tessera DATABASE -c \"COPY ... TO STDOUT") +
        " ...\" | " + promise->compress + " > FILE";
  } else if (promise->is_text && is_from) {
    hint = "Convert it to CSV first.";
  }
  return Unsupported("COPY " + std::string(is_from ? "FROM" : "TO") + " of " + promise->what +
                         " is not supported: " + QuoteForMessage(file) + " has the name of one, and COPY " +
                         (is_from ? "reads" : "writes") + " CSV",
                     position, hint);
}

/// SELECT of these columns of a table: what COPY table TO writes.
std::unique_ptr<Query> ScanQuery(std::shared_ptr<const TableInfo> table, const std::vector<int>& columns) {
  auto query = std::make_unique<Query>();
  Relation relation;
  relation.alias = BaseName(table->schema.name);
  for (const ColumnSchema& c : table->schema.columns) {
    relation.column_names.push_back(c.name);
    relation.column_types.push_back(c.type);
  }
  relation.table = std::move(table);
  query->relations.push_back(std::move(relation));
  BindContext context;
  context.relations = &query->relations;
  ExpressionBinder binder(&context, nullptr, Clause::kSelect);
  for (int c : columns)
    query->outputs.push_back({binder.Column(0, c, -1), query->relations[0].column_names[static_cast<size_t>(c)]});
  query->visible = static_cast<int>(columns.size());
  return query;
}

/// The columns where none are listed, as in PostgreSQL without the generated ones; empty: all.
std::vector<int> StoredColumns(const TableSchema& schema) {
  std::vector<int> columns;
  for (size_t c = 0; c < schema.columns.size(); ++c) {
    if (!schema.columns[c].generated_text) columns.push_back(static_cast<int>(c));
  }
  if (columns.size() == schema.columns.size()) columns.clear();
  return columns;
}

/// FROM fills a table, TO also reads a materialised view.
Result<std::shared_ptr<const TableInfo>> CopiedTable(const ParseNode& relation, bool is_from, const Dialect& dialect,
                                                     const Snapshot& snapshot) {
  if (is_from) return FindTable(relation, snapshot);
  TESSERA_ASSIGN(const std::string name, ReadRelationName(relation, snapshot, true, true));
  std::shared_ptr<const TableInfo> table = snapshot.Find(name);
  if (table == nullptr) {
    TESSERA_ASSIGN(table, FindStored(relation, snapshot));
  }
  NoteTable(*table);
  TESSERA_TRY(CheckPopulated(table->schema, relation.location()));
  return WithRows(std::move(table), &dialect, snapshot, relation.location());
}

/// The columns of a list, which stands in `sql` from `after` on.
Status BindCopiedColumns(const ParseNode& list, const TableInfo& table, bool is_from, std::string_view sql, int after,
                         std::vector<int>* columns) {
  for (const ParseNode& n : list) {
    const std::string_view name = n.Text(Field::k_sval);
    const int at = FindKeyword(sql, after, name);
    TESSERA_ASSIGN(const int column, FindTableColumn(table, name, at));
    if (std::find(columns->begin(), columns->end(), column) != columns->end())
      return SqlError(ErrorKind::kDuplicateColumn, "column \"" + std::string(name) + "\" specified more than once", at);
    if (is_from && table.schema.columns[static_cast<size_t>(column)].generated_text)
      return SqlError(ErrorKind::kGeneratedAlways, "column \"" + std::string(name) + "\" is a generated column", at,
                      "COPY computes it.");
    columns->push_back(column);
  }
  return {};
}

Status BindCsvFrom(CopyOptions options, const std::vector<int>& columns, const std::vector<int>& given,
                   const Dialect& dialect, Statement* out) {
  out->copy.from = std::move(options.from);
  out->copy.from.columns = columns;
  TESSERA_ASSIGN(out->copy.from.rules, MakeRowRules(out->target->schema, given, dialect));
  if (options.header_matches) out->value = "match";
  return {};
}

}  // namespace

Status BindCopy(const ParseNode& copy, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                int position, Statement* out) {
  const bool is_from = copy.Get(Field::k_is_from) != nullptr;
  out->kind = is_from ? Statement::Kind::kCopyFrom : Statement::Kind::kCopyTo;
  if (copy.Get(Field::k_is_program) != nullptr)
    return Unsupported("COPY with PROGRAM is not supported", FindKeyword(sql, position, "program"));
  if (const ParseNode* where = copy.Get(Field::k_whereClause))
    return Unsupported("COPY FROM with WHERE is not supported", where->location());
  out->copy.file = copy.Text(Field::k_filename);
  if (copy.Get(Field::k_filename) != nullptr && out->copy.file.empty())
    return SqlError("COPY needs a file name", position);
  const ParseNode* const options = copy.Get(Field::k_options);
  const FileFormat file_format = FormatOfCopy(options, out->copy.file);
  const bool is_csv = file_format == FileFormat::kCsv || (file_format == FileFormat::kJson && !is_from);
  CopyOptions bound;
  if (!is_csv) {
    ColumnarOptions columnar;
    columnar.format = file_format;
    columnar.stream = out->copy.file.ends_with(".arrows");
    TESSERA_TRY(BindColumnarOptions(options, is_from, &columnar));
    if (!is_from) out->setting = columnar.ToText();
  } else {
    TESSERA_TRY(CheckFileName(out->copy.file, is_from, FindKeyword(sql, position, is_from ? "from" : "to")));
    TESSERA_TRY(BindCopyOptions(options, is_from, !out->copy.file.empty(), &bound));
  }

  std::vector<int> columns;
  const ParseNode* relation = copy.Get(Field::k_relation);
  const ViewSchema* view = nullptr;
  if (relation != nullptr && !is_from) {
    TESSERA_ASSIGN(const std::string name, ReadRelationName(*relation, snapshot, true, true));
    view = FindView(snapshot.views, name);
  }
  if (relation != nullptr && view == nullptr) {
    TESSERA_ASSIGN(out->target, CopiedTable(*relation, is_from, dialect, snapshot));
    out->table = out->target->schema.name;
    if (const ParseNode* list = copy.Get(Field::k_attlist)) {
      // The tree has no positions of the names: take the first such words after the table.
      const int after = relation->location() + static_cast<int>(BaseName(out->table).size());
      TESSERA_TRY(BindCopiedColumns(*list, *out->target, is_from, sql, after, &columns));
    } else {
      columns = StoredColumns(out->target->schema);
    }
  }
  if (is_from) {
    std::vector<int> given = columns;
    for (int c = 0; columns.empty() && c < static_cast<int>(out->target->schema.columns.size()); ++c)
      given.push_back(c);
    if (!is_csv) return BindColumnarFrom(file_format, given, dialect, snapshot, position, out);
    return BindCsvFrom(std::move(bound), columns, given, dialect, out);
  }
  if (is_csv) out->copy.to = std::move(bound.from.format);
  if (view != nullptr) {
    const ParseNode* const list = copy.Get(Field::k_attlist);
    TESSERA_ASSIGN(out->query, ViewQuery(*view, list, relation->location(), sql, dialect, snapshot));
    return BindPartitionBy(options, out);
  }
  if (relation != nullptr) {
    if (columns.empty()) {
      for (size_t c = 0; c < out->target->schema.columns.size(); ++c) columns.push_back(static_cast<int>(c));
    }
    out->query = ScanQuery(out->target, columns);
    return BindPartitionBy(options, out);
  }
  const ParseNode& query = *copy.Get(Field::k_query);
  if (!query.Is(Tag::kSelectStmt))
    return Unsupported("COPY of a statement other than SELECT is not supported", position);
  TESSERA_ASSIGN(out->query, BindQuery(query, sql, dialect, snapshot));
  return BindPartitionBy(options, out);
}

}  // namespace tessera
