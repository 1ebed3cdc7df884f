// Binding statements about tables and files.
#include "compiler/table_binder.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "compiler/expression_binder.h"
#include "compiler/query_binder.h"

namespace tessera {
namespace {

constexpr uint32_t kMostTabletRows = uint32_t{1} << 20;

std::string Lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

/// The text of an option's argument: a string, a number or a word; empty if there is none.
std::string OptionText(const ParseNode& option) {
  const ParseNode* arg = option.Get(Field::k_arg);
  if (arg == nullptr) return {};
  if (arg->Is(Tag::kString)) return std::string(arg->Text(Field::k_sval));
  if (arg->Is(Tag::kFloat)) return std::string(arg->Text(Field::k_fval));
  if (arg->Is(Tag::kInteger)) return std::to_string(arg->Number(Field::k_ival));
  if (arg->Is(Tag::kBoolean)) return arg->Number(Field::k_boolval) != 0 ? "true" : "false";
  if (arg->Is(Tag::kTypeName)) {
    const ParseNode* names = arg->Get(Field::k_names);
    const ParseNode* last = names != nullptr ? names->first() : nullptr;
    while (last != nullptr && last->next() != nullptr) last = last->next();
    return last != nullptr ? std::string(last->Text(Field::k_sval)) : std::string();
  }
  return {};
}

Status BindTableOptions(const ParseNode& options, TableSchema* schema) {
  for (const ParseNode& option : options) {
    const std::string_view name = option.Text(Field::k_defname);
    if (name != "tablet_rows") {
      return SqlError("unrecognized parameter \"" + std::string(name) + "\"", option.location(),
                      "The only one is tablet_rows.");
    }
    const ParseNode* arg = option.Get(Field::k_arg);
    const int64_t rows = arg != nullptr && arg->Is(Tag::kInteger) ? arg->Number(Field::k_ival) : 0;
    if (rows < 1 || rows > kMostTabletRows) {
      return SqlError("tablet_rows must be an integer between 1 and " + std::to_string(kMostTabletRows),
                      option.location());
    }
    schema->tablet_rows = static_cast<uint32_t>(rows);
  }
  return {};
}

/// What a constraint that is not kept is called; "" for those that are.
std::string UnsupportedConstraint(std::string_view type) {
  struct Row {
    std::string_view type, name;
  };
  constexpr Row kRows[] = {{"CONSTR_DEFAULT", "DEFAULT"},
                           {"CONSTR_CHECK", "CHECK"},
                           {"CONSTR_UNIQUE", "UNIQUE"},
                           {"CONSTR_FOREIGN", "FOREIGN KEY"},
                           {"CONSTR_IDENTITY", "GENERATED AS IDENTITY"},
                           {"CONSTR_GENERATED", "GENERATED ALWAYS AS"},
                           {"CONSTR_EXCLUSION", "EXCLUDE"}};
  for (const Row& row : kRows) {
    if (row.type == type) return std::string(row.name);
  }
  if (type == "CONSTR_NOTNULL" || type == "CONSTR_NULL" || type == "CONSTR_PRIMARY") return {};
  return "this constraint (" + std::string(type) + ")";
}

class TableBinder {
 public:
  TableBinder(std::string_view sql, TableSchema* schema) : schema_(schema) { context_.sql = sql; }

  Status AddColumn(const ParseNode& definition) {
    const int position = definition.location();
    ColumnSchema column;
    column.name = definition.Text(Field::k_colname);
    for (const ColumnSchema& other : schema_->columns) {
      if (other.name == column.name)
        return SqlError("column \"" + column.name + "\" specified more than once", position);
    }
    const ParseNode* type = definition.Get(Field::k_typeName);
    if (type == nullptr) return Unsupported("a column without a type is not supported", position);
    if (definition.Get(Field::k_collClause) != nullptr) return Unsupported("COLLATE is not supported", position);
    ExpressionBinder types(&context_, nullptr, Clause::kValues);
    TESSERA_ASSIGN(column.type, types.BindType(*type, type->location()));
    if (column.type.id == TypeId::kInterval)
      return Unsupported("a column of type INTERVAL is not supported", type->location());
    bool is_null = false;
    schema_->columns.push_back(column);
    if (const ParseNode* constraints = definition.Get(Field::k_constraints)) {
      for (const ParseNode& c : *constraints) {
        const std::string_view kind = c.Text(Field::k_contype);
        if (const std::string name = UnsupportedConstraint(kind); !name.empty()) {
          return Unsupported(name + " is not supported", c.location());
        }
        bool& not_null = schema_->columns.back().not_null;
        if (kind == "CONSTR_NULL") is_null = true;
        if (kind == "CONSTR_NOTNULL") not_null = true;
        if (is_null && not_null) {
          return SqlError("conflicting NULL/NOT NULL declarations for column \"" + column.name + "\"", c.location());
        }
        if (kind == "CONSTR_PRIMARY")
          TESSERA_TRY(SetPrimaryKey({static_cast<int>(schema_->columns.size()) - 1}, c.location()));
      }
    }
    return {};
  }

  /// A constraint of the table; its columns are all known.
  Status AddConstraint(const ParseNode& constraint) {
    const std::string_view kind = constraint.Text(Field::k_contype);
    const int position = constraint.location();
    if (const std::string name = UnsupportedConstraint(kind); !name.empty())
      return Unsupported(name + " is not supported", position);
    std::vector<int> key;
    const ParseNode* keys = constraint.Get(Field::k_keys);
    if (kind != "CONSTR_PRIMARY" || keys == nullptr) return Unsupported("this constraint is not supported", position);
    for (const ParseNode& k : *keys) {
      const std::string_view name = k.Text(Field::k_sval);
      const int column = schema_->Find(name);
      if (column < 0) return SqlError("column \"" + std::string(name) + "\" named in key does not exist", position);
      if (std::find(key.begin(), key.end(), column) != key.end()) {
        return SqlError("column \"" + std::string(name) + "\" appears twice in primary key constraint", position);
      }
      key.push_back(column);
    }
    return SetPrimaryKey(key, position);
  }

 private:
  Status SetPrimaryKey(const std::vector<int>& key, int position) {
    if (!schema_->primary_key.empty()) {
      return SqlError("multiple primary keys for table \"" + schema_->name + "\" are not allowed", position);
    }
    schema_->primary_key = key;
    for (int c : key) schema_->columns[static_cast<size_t>(c)].not_null = true;
    return {};
  }

  TableSchema* schema_;
  BindContext context_;
};

// ---- COPY

/// An option of COPY that is one byte.
Status ByteOption(const ParseNode& option, const char* what, char* out) {
  std::string text = OptionText(option);
  if (text == "\\t") text = "\t";  // as people type it where '\t' is no tab in SQL
  if (text.size() != 1)
    return SqlError(std::string("COPY ") + what + " must be a single one-byte character", option.location());
  if (text[0] == '\n' || text[0] == '\r') {
    return SqlError(std::string("COPY ") + what + " cannot be newline or carriage return", option.location());
  }
  *out = text[0];
  return {};
}

struct CopyFormat {
  char delimiter = ',';
  bool header = false;
  std::string null_string;
  char quote = '"';
  char escape = '"';
};

Status BindCopyOptions(const ParseNode* options, bool is_from, CopyFormat* format) {
  bool has_escape = false;
  int delimiter_position = -1;
  if (options != nullptr) {
    for (const ParseNode& option : *options) {
      const std::string name = Lower(option.Text(Field::k_defname));
      const int position = option.location();
      if (name == "format") {
        const std::string text = Lower(OptionText(option));
        if (text == "text" || text == "binary") {
          return Unsupported("COPY format \"" + text + "\" is not supported", position,
                             "The format is csv; DELIMITER and NULL can be chosen.");
        }
        if (text != "csv") return SqlError("COPY format \"" + text + "\" not recognized", position);
      } else if (name == "delimiter" || name == "delim" || name == "sep") {
        TESSERA_TRY(ByteOption(option, "delimiter", &format->delimiter));
        delimiter_position = position;
      } else if (name == "header") {
        const std::string text = Lower(OptionText(option));
        if (text == "match") {
          if (!is_from) return SqlError("cannot use \"match\" with HEADER in COPY TO", position);
          return Unsupported("HEADER MATCH is not supported", position);
        }
        TESSERA_ASSIGN(format->header, BooleanOption(option));
      } else if (name == "null" || name == "nullstr") {
        format->null_string = OptionText(option);
        if (format->null_string.find_first_of("\r\n") != std::string::npos) {
          return SqlError("COPY null representation cannot use newline or carriage return", position);
        }
      } else if (name == "quote") {
        TESSERA_TRY(ByteOption(option, "quote", &format->quote));
      } else if (name == "escape") {
        TESSERA_TRY(ByteOption(option, "escape", &format->escape));
        has_escape = true;
      } else if (name == "encoding") {
        const std::string text = Lower(OptionText(option));
        if (text != "utf8" && text != "utf-8")
          return Unsupported("COPY encoding \"" + text + "\" is not supported", position, "Files are UTF-8.");
      } else {
        return Unsupported("COPY option \"" + name + "\" is not supported", position);
      }
    }
  }
  if (!has_escape) format->escape = format->quote;
  if (format->delimiter == format->quote)
    return SqlError("COPY delimiter and quote must be different", delimiter_position);
  if (format->null_string.find(format->delimiter) != std::string::npos) {
    return SqlError("COPY delimiter character must not appear in the NULL specification", delimiter_position);
  }
  if (format->null_string.find(format->quote) != std::string::npos) {
    return SqlError("CSV quote character must not appear in the NULL specification", delimiter_position);
  }
  return {};
}

}  // namespace

Result<bool> BooleanOption(const ParseNode& option) {
  if (option.Get(Field::k_arg) == nullptr) return true;
  const std::string text = Lower(OptionText(option));
  if (text == "true" || text == "on" || text == "1") return true;
  if (text == "false" || text == "off" || text == "0") return false;
  return SqlError(std::string(option.Text(Field::k_defname)) + " requires a Boolean value", option.location());
}

Status BindCreateTable(const ParseNode& create, std::string_view sql, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kCreateTable;
  const ParseNode& relation = *create.Get(Field::k_relation);
  const int position = relation.location();
  if (relation.Get(Field::k_schemaname) != nullptr || relation.Get(Field::k_catalogname) != nullptr) {
    return Unsupported("a table name with a schema is not supported", position);
  }
  const std::string_view persistence = relation.Text(Field::k_relpersistence);
  if (persistence == "t") return Unsupported("a temporary table is not supported", position);
  if (persistence == "u") return Unsupported("an unlogged table is not supported", position);
  if (create.Get(Field::k_inhRelations) != nullptr) return Unsupported("INHERITS is not supported", position);
  if (create.Get(Field::k_partspec) != nullptr) return Unsupported("PARTITION BY is not supported", position);
  if (create.Get(Field::k_ofTypename) != nullptr) return Unsupported("CREATE TABLE OF is not supported", position);
  if (create.Get(Field::k_tablespacename) != nullptr) return Unsupported("TABLESPACE is not supported", position);
  if (create.Text(Field::k_oncommit) != "ONCOMMIT_NOOP") return Unsupported("ON COMMIT is not supported", position);
  out->table = relation.Text(Field::k_relname);
  out->schema.name = out->table;
  out->if_exists = create.Get(Field::k_if_not_exists) != nullptr;
  if (!out->if_exists && snapshot.Find(out->table) != nullptr)
    return SqlError("table \"" + out->table + "\" already exists", position);

  TableBinder binder(sql, &out->schema);
  const ParseNode* elements = create.Get(Field::k_tableElts);
  if (elements == nullptr) return SqlError("table \"" + out->table + "\" must have at least one column", position);
  for (const ParseNode& e : *elements) {
    if (e.Is(Tag::kColumnDef)) {
      TESSERA_TRY(binder.AddColumn(e));
    } else if (!e.Is(Tag::kConstraint)) {
      return Unsupported("LIKE in CREATE TABLE is not supported", position);
    }
  }
  for (const ParseNode& e : *elements) {
    if (e.Is(Tag::kConstraint)) TESSERA_TRY(binder.AddConstraint(e));
  }
  if (out->schema.columns.empty())
    return SqlError("table \"" + out->table + "\" must have at least one column", position);
  if (const ParseNode* options = create.Get(Field::k_options)) TESSERA_TRY(BindTableOptions(*options, &out->schema));
  return {};
}

Status BindDropTable(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kDropTable;
  const std::string_view type = drop.Text(Field::k_removeType);
  if (type != "OBJECT_TABLE") {
    std::string name(type.starts_with("OBJECT_") ? type.substr(7) : type);
    return Unsupported("DROP " + name + " is not supported", position);
  }
  const ParseNode* objects = drop.Get(Field::k_objects);
  if (objects->first()->next() != nullptr)
    return Unsupported("DROP TABLE of several tables is not supported", position);
  const ParseNode* names = objects->first()->Get(Field::k_items);
  if (names->first()->next() != nullptr) return Unsupported("a table name with a schema is not supported", position);
  out->table = names->first()->Text(Field::k_sval);
  out->if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  if (!out->if_exists && snapshot.Find(out->table) == nullptr) return TableNotFound(out->table, -1, snapshot);
  return {};
}

Status BindCopy(const ParseNode& copy, std::string_view sql, const Snapshot& snapshot, int position, Statement* out) {
  const bool is_from = copy.Get(Field::k_is_from) != nullptr;
  out->kind = is_from ? Statement::Kind::kCopyFrom : Statement::Kind::kCopyTo;
  if (copy.Get(Field::k_is_program) != nullptr)
    return Unsupported("COPY with PROGRAM is not supported", FindKeyword(sql, position, "program"));
  if (const ParseNode* where = copy.Get(Field::k_whereClause))
    return Unsupported("COPY FROM with WHERE is not supported", where->location());
  out->file = copy.Text(Field::k_filename);
  if (copy.Get(Field::k_filename) != nullptr && out->file.empty()) return SqlError("COPY needs a file name", position);
  CopyFormat format;
  TESSERA_TRY(BindCopyOptions(copy.Get(Field::k_options), is_from, &format));

  std::vector<int> columns;
  const ParseNode* relation = copy.Get(Field::k_relation);
  if (relation != nullptr) {
    TESSERA_ASSIGN(out->target, FindTable(*relation, snapshot));
    out->table = out->target->schema.name;
    if (const ParseNode* list = copy.Get(Field::k_attlist)) {
      for (const ParseNode& n : *list) {
        const std::string_view name = n.Text(Field::k_sval);
        // The names have no place in the tree: take the first such word behind the table.
        const int at = FindKeyword(sql, relation->location() + static_cast<int>(out->table.size()), name);
        TESSERA_ASSIGN(const int column, FindTableColumn(*out->target, name, at));
        if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
          return SqlError("column \"" + std::string(name) + "\" specified more than once", at);
        }
        columns.push_back(column);
      }
    }
  }
  if (is_from) {
    out->copy_from.delimiter = format.delimiter;
    out->copy_from.header = format.header;
    out->copy_from.null_string = format.null_string;
    out->copy_from.quote = format.quote;
    out->copy_from.escape = format.escape;
    out->copy_from.columns = columns;
    return {};
  }
  out->copy_to.delimiter = format.delimiter;
  out->copy_to.header = format.header;
  out->copy_to.null_string = format.null_string;
  out->copy_to.quote = format.quote;
  out->copy_to.escape = format.escape;
  if (relation != nullptr) {
    if (columns.empty()) {
      for (size_t c = 0; c < out->target->schema.columns.size(); ++c) columns.push_back(static_cast<int>(c));
    }
    out->query = ScanQuery(out->target, columns);
    return {};
  }
  const ParseNode& query = *copy.Get(Field::k_query);
  if (!query.Is(Tag::kSelectStmt))
    return Unsupported("COPY of a statement other than SELECT is not supported", position);
  TESSERA_ASSIGN(out->query, BindQuery(query, sql, snapshot));
  return {};
}

}  // namespace tessera
