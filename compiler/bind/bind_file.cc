// Binding files in FROM: 'a.csv', read_csv('a.csv', option = x, ...) and 'a.db'.t. The files are looked for, and what is not
// said of them is guessed, while the statement is bound; they are read when it runs.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/parse/parser.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/nearest_name.h"
#include "tablet/file_tables.h"
#include "tablet/load/file_spec.h"

namespace tessera {
namespace {

/// One argument of a call: its name, if it has one, and its value.
struct Argument {
  std::string name;
  const ParseNode* value = nullptr;
  int position = -1;
};

/// f(x, a = y, b := z, c => w)
Argument ArgumentOf(const ParseNode& node) {
  if (node.Is(Tag::kNamedArgExpr))
    return {LowerCase(node.Text(Field::k_name)), node.Get(Field::k_arg), node.location()};
  if (node.Is(Tag::kA_Expr) && node.Get(Field::k_name) != nullptr) {
    const ParseNode* const left = node.Get(Field::k_lexpr);
    const bool equals = node.Get(Field::k_name)->first()->Text(Field::k_sval) == "=";
    if (equals && left != nullptr && left->Is(Tag::kColumnRef) && left->Get(Field::k_fields)->size() == 1) {
      const std::string name = LowerCase(left->Get(Field::k_fields)->first()->Text(Field::k_sval));
      return {name, node.Get(Field::k_rexpr), left->location()};
    }
  }
  return {"", &node, node.FirstLocation()};
}

class FileArguments {
 public:
  explicit FileArguments(BindContext* context) : context_(*context) {}

  Status Bind(const ParseNode& call, const std::string& function, FileSpec* spec) {
    const ParseNode* const list = call.Get(Field::k_args);
    if (list == nullptr)
      return SqlError(function + " takes the name of a file", call.location(), "Write " + function + "('FILE').");
    size_t number = 0;
    for (const ParseNode& node : *list) {
      const Argument argument = ArgumentOf(node);
      const bool is_table = number == 1 && argument.name.empty() && TakesTable(function);
      if (is_table) {
        TESSERA_ASSIGN(spec->table, Text(*argument.value, "the name of a table"));
        spec->format = FileFormat::kSqlite;
      } else if (number > 0) {
        TESSERA_TRY(BindOption(argument, function, spec));
      }
      if (number++ > 0) continue;
      TESSERA_ASSIGN(spec->patterns, Texts(*argument.value, "the name of a file"));
      if (spec->patterns.empty()) return SqlError(function + " takes at least one file", argument.position);
    }
    return {};
  }

 private:
  /// Whether its second argument may be a table of the file.
  static bool TakesTable(const std::string& function) { return function == "FROM" || function == "sqlite_scan"; }
  Result<Value> Constant(const ParseNode& node, const SqlType& type, const std::string& what) {
    ExpressionBinder binder(&context_, nullptr, Clause::kLimit);
    TESSERA_ASSIGN(ExprPtr e, binder.Bind(node));
    const int position = e->position;
    TESSERA_ASSIGN(e, binder.Coerce(std::move(e), type, CastContext::kExplicit));
    if (!IsConstant(*e) || e->constant.null) return SqlError(what + " must be a constant that is not NULL", position);
    return e->constant;
  }
  Result<std::string> Text(const ParseNode& node, const std::string& what) {
    TESSERA_ASSIGN(Value v, Constant(node, SqlType::Text(), what));
    return std::move(v.text);
  }
  /// A text, or a list of them.
  Result<std::vector<std::string>> Texts(const ParseNode& node, const std::string& what) {
    std::vector<std::string> texts;
    if (!node.Is(Tag::kA_ArrayExpr)) {
      TESSERA_ASSIGN(texts.emplace_back(), Text(node, what));
      return texts;
    }
    if (const ParseNode* const elements = node.Get(Field::k_elements)) {
      for (const ParseNode& e : *elements) {
        TESSERA_ASSIGN(texts.emplace_back(), Text(e, what));
      }
    }
    return texts;
  }
  Result<bool> Flag(const ParseNode& node, const std::string& what) {
    TESSERA_ASSIGN(const Value v, Constant(node, SqlType::Of(TypeId::kBoolean), what));
    return v.i64 != 0;
  }
  Result<int64_t> Number(const ParseNode& node, const std::string& what, int64_t least) {
    TESSERA_ASSIGN(const Value v, Constant(node, SqlType::Of(TypeId::kBigint), what));
    if (v.i64 < least) return SqlError(what + " must be at least " + std::to_string(least), node.FirstLocation());
    return v.i64;
  }
  /// One byte, or `none` of an empty text.
  Result<char> Byte(const ParseNode& node, const std::string& what, std::optional<char> none) {
    TESSERA_ASSIGN(std::string text, Text(node, what));
    if (text == "\\t") text = "\t";
    if (text.empty() && none) return *none;
    if (text.size() != 1 || text == "\n" || text == "\r" || text[0] == 0)
      return SqlError(what + " must be a single one-byte character that ends no line", node.FirstLocation());
    return text[0];
  }
  Result<SqlType> TypeNamed(const std::string& text, int position) {
    const std::string sql = "SELECT CAST(NULL AS " + text + ")";
    const Result<ParsedStatement> parsed = Parse(sql, {});
    const ParseNode* const targets = parsed.ok() ? parsed->statement->Get(Field::k_targetList) : nullptr;
    const ParseNode* const target = targets != nullptr && targets->size() == 1 ? targets->first() : nullptr;
    const ParseNode* const cast = target != nullptr ? target->Get(Field::k_val) : nullptr;
    if (cast == nullptr || !cast->Is(Tag::kTypeCast)) return SqlError("\"" + text + "\" is no type", position);
    const ParseNode* const type = cast->Get(Field::k_typeName);
    Result<SqlType> bound = ExpressionBinder(&context_, nullptr, Clause::kLimit).BindType(*type, position);
    if (!bound.ok()) return Status(bound.status().kind(), bound.status().message(), bound.status().hint(), position);
    return bound;
  }
  /// ['INTEGER', ...], or pairs where `named`: {'a': 'INTEGER', ...}.
  Status Types(const Argument& a, bool named, FileSpec* spec) {
    TESSERA_ASSIGN(const std::vector<std::string> texts, Texts(*a.value, "a type"));
    if (named && texts.size() % 2 != 0)
      return SqlError(a.name + " takes names with their types", a.position, "Such as {'a': 'BIGINT', 'b': 'TEXT'}.");
    for (size_t i = 0; i < texts.size(); i += named ? 2 : 1) {
      TESSERA_ASSIGN(const SqlType type, TypeNamed(texts[named ? i + 1 : i], a.position));
      spec->types.emplace_back(named ? texts[i] : std::string(), type);
    }
    return {};
  }
  /// Whether a list was written as a struct: it is an ARRAY[...] by now, but the user's text has its brace.
  bool IsStruct(const ParseNode& node) const {
    const int at = node.FirstLocation();
    if (at < 0 || static_cast<size_t>(at) >= context_.sql.size()) return false;
    const size_t before = context_.sql.find_last_of("[{", static_cast<size_t>(at));
    return before != std::string_view::npos && context_.sql[before] == '{';
  }
  Status BindOption(const Argument& a, const std::string& function, FileSpec* spec);
  /// Of all formats. False: it is none of these options.
  Result<bool> BindCommonOption(const Argument& a, FileSpec* spec);

  BindContext& context_;
};

/// Of read_csv and the like.
FileFormat FormatOfFunction(const std::string& name) {
  if (name == "read_parquet" || name == "parquet_scan") return FileFormat::kParquet;
  if (name == "read_json" || name == "read_json_auto" || name == "read_ndjson") return FileFormat::kJson;
  if (name == "sqlite_scan") return FileFormat::kSqlite;
  return name == "read_arrow" ? FileFormat::kArrow : FileFormat::kCsv;
}

constexpr std::string_view kOptions[] = {
    "all_varchar",   "auto_detect",     "columns",  "comment",       "compression", "dateformat", "decimal_separator",
    "delim",         "delimiter",       "encoding", "escape",        "filename",    "header",     "hive_partitioning",
    "ignore_errors", "names",           "nullstr",  "quote",         "sample_size", "sep",        "skip",
    "thousands",     "timestampformat", "types",    "union_by_name", "dtypes"};

Status NoSuchOption(const Argument& a, const std::string& function, const std::vector<std::string_view>& options) {
  const std::string nearest = NearestName(a.name, options);
  return Unsupported("option \"" + a.name + "\" of " + function + " is not supported", a.position,
                     nearest.empty() ? "" : "Perhaps you meant " + nearest + ".");
}

constexpr std::string_view kJsonOptions[] = {"columns",       "encoding",    "filename",
                                             "ignore_errors", "sample_size", "union_by_name"};
constexpr std::string_view kCommonOptions[] = {"filename", "hive_partitioning", "union_by_name"};
constexpr std::string_view kSqliteOptions[] = {"all_varchar", "filename", "union_by_name"};

Result<bool> FileArguments::BindCommonOption(const Argument& a, FileSpec* spec) {
  const std::string what = "option " + a.name;
  if (a.name == "filename") {
    TESSERA_ASSIGN(spec->filename, Flag(*a.value, what));
  } else if (a.name == "hive_partitioning") {
    TESSERA_ASSIGN(spec->hive_partitioning, Flag(*a.value, what));
  } else if (a.name == "union_by_name") {
    TESSERA_ASSIGN(spec->union_by_name, Flag(*a.value, what));
  } else {
    return false;
  }
  return true;
}

Status FileArguments::BindOption(const Argument& a, const std::string& function, FileSpec* spec) {
  const std::string& name = a.name;
  if (name.empty())
    return SqlError(function + " takes files, and then options with their names", a.position,
                    "Such as delim = ';', header = true.");
  if (a.value == nullptr) return SqlError("option " + name + " has no value", a.position);
  const ParseNode& value = *a.value;
  const std::string what = "option " + name;
  TESSERA_ASSIGN(const bool is_common, BindCommonOption(a, spec));
  if (is_common) return {};
  const bool of_json = std::ranges::find(kJsonOptions, name) != std::end(kJsonOptions);
  if (IsColumnar(spec->format))
    return NoSuchOption(a, function, {std::begin(kCommonOptions), std::end(kCommonOptions)});
  if (spec->format == FileFormat::kSqlite && name != "all_varchar")
    return NoSuchOption(a, function, {std::begin(kSqliteOptions), std::end(kSqliteOptions)});
  if (spec->format == FileFormat::kJson && !of_json)
    return NoSuchOption(a, function, {std::begin(kJsonOptions), std::end(kJsonOptions)});
  if (name == "delim" || name == "delimiter" || name == "sep") {
    TESSERA_ASSIGN(spec->delimiter, Byte(value, what, std::nullopt));
  } else if (name == "quote") {
    TESSERA_ASSIGN(spec->quote, Byte(value, what, '\0'));
  } else if (name == "escape") {
    TESSERA_ASSIGN(spec->escape, Byte(value, what, std::nullopt));
  } else if (name == "header") {
    TESSERA_ASSIGN(spec->header, Flag(value, what));
  } else if (name == "nullstr") {
    TESSERA_ASSIGN(spec->null_string, Text(value, what));
  } else if (name == "skip") {
    TESSERA_ASSIGN(const int64_t lines, Number(value, what, 0));
    spec->skip_lines = static_cast<uint64_t>(lines);
  } else if (name == "sample_size") {
    TESSERA_ASSIGN(spec->sampled_rows, Number(value, what, -1));
    if (spec->sampled_rows == 0) return SqlError(what + " must be -1 or at least 1", a.position);
  } else if (name == "encoding") {
    TESSERA_ASSIGN(const std::string text, Text(value, what));
    spec->encoding = EncodingNamed(text);
    if (!spec->encoding) return Unsupported("encoding \"" + text + "\" is not supported", a.position, kEncodings);
  } else if (name == "decimal_separator") {
    TESSERA_ASSIGN(spec->decimal, Byte(value, what, std::nullopt));
  } else if (name == "thousands") {
    TESSERA_ASSIGN(spec->thousands, Byte(value, what, '\0'));
  } else if (name == "dateformat") {
    TESSERA_ASSIGN(spec->date_format, Text(value, what));
  } else if (name == "timestampformat") {
    TESSERA_ASSIGN(spec->timestamp_format, Text(value, what));
  } else if (name == "names") {
    TESSERA_ASSIGN(spec->names, Texts(value, "a column's name"));
  } else if (name == "types" || name == "dtypes") {
    TESSERA_TRY(Types(a, IsStruct(value), spec));
  } else if (name == "columns") {
    TESSERA_TRY(Types(a, true, spec));
    spec->names.emplace();
    for (auto& [column, type] : spec->types) spec->names->push_back(column);
  } else if (name == "all_varchar") {
    TESSERA_ASSIGN(spec->all_text, Flag(value, what));
  } else if (name == "ignore_errors") {
    TESSERA_ASSIGN(spec->ignore_errors, Flag(value, what));
  } else if (name == "auto_detect") {  // what is said is not guessed, with or without it
    TESSERA_TRY(Flag(value, what).status());
  } else {
    return NoSuchOption(a, function, {std::begin(kOptions), std::end(kOptions)});
  }
  return {};
}

/// The name of a file without its folder and what follows a point, as a table would be called.
std::string StemOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const size_t point = name.find('.');
  return point == 0 ? name : name.substr(0, point);
}

}  // namespace

Status FromBinder::BindFile(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope) {
  const int position = call.location();
  const bool is_plain = name == kFileCall;
  if (item.Get(Field::k_ordinality) != nullptr)
    return Unsupported("WITH ORDINALITY of a file is not supported", position, "row_number() OVER () numbers rows.");
  FileTables* const files = context_.dialect != nullptr ? context_.dialect->files : nullptr;
  if (files == nullptr) return Unsupported("a file here is not supported", position);
  FileSpec spec;
  if (!is_plain) spec.format = FormatOfFunction(name);
  FileArguments arguments(&context_);
  TESSERA_TRY(arguments.Bind(call, is_plain ? "FROM" : name, &spec));
  NoteMoment();  // the files are looked at again each time
  Result<std::shared_ptr<const TableInfo>> table = files->Find(spec);
  if (!table.ok()) {
    const Status& error = table.status();
    return {error.kind(), error.message(), error.hint(), position};
  }
  Relation relation = StoredTable(*std::move(table));
  relation.alias = !is_plain ? name : spec.table.empty() ? StemOf(spec.patterns[0]) : LowerCase(spec.table);
  return AddRelation(std::move(relation), "", item.Get(Field::k_alias), position, scope);
}

}  // namespace tessera
