#include "compiler/bind/sequence_binder.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "compiler/bind/relation_name.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/parse/statement_option.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/schema_text.h"
#include "compiler/query/sequence_source.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

struct IntegerBounds {
  const char* name;
  int64_t least, greatest;
};
constexpr IntegerBounds kTypes[] = {
    {"SMALLINT", INT16_MIN, INT16_MAX}, {"INTEGER", INT32_MIN, INT32_MAX}, {"BIGINT", INT64_MIN, INT64_MAX}};

const IntegerBounds* BoundsOf(std::string_view type) {
  const auto found = std::ranges::find_if(kTypes, [&](const IntegerBounds& t) { return t.name == type; });
  return found != std::end(kTypes) ? found : nullptr;
}

Result<Sequences> All(const Dialect& dialect) {
  if (dialect.sequences == nullptr) return Unsupported("a sequence is not supported here");
  return dialect.sequences->All();
}

Status Absent(const std::string& name, const Sequences& all, int position) {
  std::vector<std::string_view> names;
  for (const Sequence& sequence : all) names.push_back(sequence.name);
  const std::string nearest = NearestName(name, names);
  return SqlError(ErrorKind::kUndefinedTable, "sequence \"" + name + "\" does not exist", position,
                  nearest.empty() ? "CREATE SEQUENCE makes one." : "Perhaps you meant sequence \"" + nearest + "\".");
}

/// The tree has no numbers below 0 (libpg_query leaves them out): those are read from the text.
std::string NumberText(const ParseNode& option, std::string_view sql) {
  const ParseNode* const arg = option.Get(Field::k_arg);
  if (!arg->Is(Tag::kInteger) || arg->Number(Field::k_ival) != 0 || option.location() < 0) return OptionText(option);
  std::string sign;
  for (Token t = NextToken(sql, static_cast<size_t>(option.location())); t.kind != Token::Kind::kEnd;
       t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kNumber) return sign + std::string(sql.substr(t.begin, t.end - t.begin));
    if (t.kind == Token::Kind::kSymbol && sql[t.begin] == '-') sign = "-";
  }
  return OptionText(option);
}

Result<int64_t> NumberOf(const ParseNode& option, std::string_view sql) {
  const std::string text = NumberText(option, sql);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  return SqlError("\"" + text + "\" of a sequence is no BIGINT", option.location());
}

/// OWNED BY t.c, or NONE.
Status SetOwner(const ParseNode& option, const Snapshot& snapshot, Sequence* sequence) {
  std::vector<std::string> names;
  for (const ParseNode& name : *option.Get(Field::k_arg)->Get(Field::k_items))
    names.emplace_back(name.Text(Field::k_sval));
  sequence->table_id = 0;
  if (names.size() == 1 && names[0] == "none") return {};
  if (names.size() < 2) return SqlError("OWNED BY takes a column: table.column", option.location());
  TESSERA_ASSIGN(const std::string table, NameOfParts({names.begin(), names.end() - 1}, snapshot));
  const std::shared_ptr<const TableInfo> found = snapshot.Find(table);
  if (found == nullptr)
    return SqlError(ErrorKind::kUndefinedTable, "table \"" + table + "\" does not exist", option.location());
  if (found->schema.Find(names.back()) < 0) {
    return SqlError(ErrorKind::kUndefinedColumn,
                    "column \"" + names.back() + "\" of table \"" + table + "\" does not exist", option.location());
  }
  sequence->table_id = found->id;
  sequence->column = names.back();
  return {};
}

/// What CREATE and ALTER SEQUENCE say. `restarts`: ALTER may say where it goes on.
Status ReadOptions(const ParseNode* options, std::string_view sql, const Snapshot& snapshot, bool is_new, Sequence* s) {
  std::optional<int64_t> least, greatest, start;
  bool new_bounds = is_new;
  for (const ParseNode* o = options != nullptr ? options->first() : nullptr; o != nullptr; o = o->next()) {
    const std::string_view name = o->Text(Field::k_defname);
    const bool has_value = o->Get(Field::k_arg) != nullptr;
    if (name == "as") {
      const std::string word = OptionText(*o);
      s->type = word == "int2" ? "SMALLINT" : word == "int4" ? "INTEGER" : word == "int8" ? "BIGINT" : "";
      if (s->type.empty()) return SqlError("sequence type must be smallint, integer, or bigint", o->location());
      new_bounds = true;
    } else if (name == "increment") {
      TESSERA_ASSIGN(s->increment, NumberOf(*o, sql));
    } else if (name == "start") {
      TESSERA_ASSIGN(start, NumberOf(*o, sql));
    } else if (name == "restart") {
      s->value = s->start;
      if (has_value) {
        TESSERA_ASSIGN(s->value, NumberOf(*o, sql));
      }
      s->was_given = false;
    } else if (name == "minvalue" || name == "maxvalue") {
      std::optional<int64_t>& bound = name == "minvalue" ? least : greatest;
      if (has_value) {
        TESSERA_ASSIGN(bound, NumberOf(*o, sql));
      }
      new_bounds |= !has_value;
    } else if (name == "cycle") {
      s->cycles = OptionText(*o) != "false";
    } else if (name == "owned_by") {
      TESSERA_TRY(SetOwner(*o, snapshot, s));
    } else if (name != "cache" && name != "sequence_name" && name != "logged" && name != "generated") {
      return Unsupported("option " + std::string(name) + " of a sequence is not supported", o->location());
    }
  }
  const IntegerBounds& bounds = *BoundsOf(s->type);
  const bool rises = s->increment > 0;
  if (new_bounds) {
    s->least = rises ? 1 : bounds.least;
    s->greatest = rises ? bounds.greatest : -1;
  }
  if (least) s->least = *least;
  if (greatest) s->greatest = *greatest;
  if (s->least < bounds.least || s->greatest > bounds.greatest)
    return SqlError("the bounds of a sequence are out of range for type " + s->type);
  if (start || is_new) s->start = start.value_or(rises ? s->least : s->greatest);
  if (is_new) s->value = s->start;
  return CheckSequence(*s);
}

std::string NewName(const std::string& base, const Sequences& there, const Sequences& others,
                    const Snapshot& snapshot) {
  const auto taken = [&](const std::string& name) {
    return FindSequence(there, name) != nullptr || FindSequence(others, name) != nullptr ||
           snapshot.Find(name) != nullptr || FindView(snapshot.views, name, false) != nullptr;
  };
  std::string name = base;
  for (int i = 1; taken(name); ++i) name = base + std::to_string(i);
  return name;
}

}  // namespace

Status BindCreateSequence(const ParseNode& create, std::string_view sql, int position, const Dialect& dialect,
                          const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kCreateSequence;
  const ParseNode& relation = *create.Get(Field::k_sequence);
  TESSERA_ASSIGN(const std::string name, NewRelationName(relation, snapshot));
  if (IsTemporaryName(name)) out->table = name;
  TESSERA_ASSIGN(const Sequences all, All(dialect));
  out->definition.if_exists = create.Get(Field::k_if_not_exists) != nullptr;
  const bool is_table = snapshot.Find(name) != nullptr || FindView(snapshot.views, name, false) != nullptr;
  if (is_table || (!out->definition.if_exists && FindSequence(all, name) != nullptr))
    return SqlError(ErrorKind::kDuplicateTable, "relation \"" + name + "\" already exists", relation.location());
  Sequence sequence;
  sequence.name = name;
  const Status status = ReadOptions(create.Get(Field::k_options), sql, snapshot, true, &sequence);
  if (!status.ok()) return status.At(position);
  out->definition.sequences.push_back(std::move(sequence));
  return {};
}

Status BindAlterSequence(const ParseNode& alter, std::string_view sql, int position, const Dialect& dialect,
                         const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kAlterSequence;
  const ParseNode& relation = *alter.Get(Field::k_sequence);
  TESSERA_ASSIGN(std::string name, RelationName(relation, snapshot));
  TESSERA_ASSIGN(const Sequences all, All(dialect));
  const std::string hiding = QualifiedName(kTemporarySchema, relation.Text(Field::k_relname));
  if (relation.Text(Field::k_schemaname).empty() && FindSequence(all, hiding) != nullptr) name = hiding;
  if (IsTemporaryName(name)) out->table = name;
  const Sequence* const found = FindSequence(all, name);
  if (found == nullptr && alter.Get(Field::k_missing_ok) != nullptr) {
    out->kind = Statement::Kind::kNotice;
    out->notice = "ALTER SEQUENCE: no effect, sequence \"" + name + "\" does not exist";
    return {};
  }
  if (found == nullptr) return Absent(name, all, relation.location());
  Sequence sequence = *found;
  const Status status = ReadOptions(alter.Get(Field::k_options), sql, snapshot, false, &sequence);
  if (!status.ok()) return status.At(position);
  out->definition.sequences.push_back(std::move(sequence));
  return {};
}

namespace {

/// The tables with a column whose DEFAULT takes values of the sequence, without that DEFAULT.
std::vector<TableSchema> WithoutDefaults(const std::string& sequence, const Snapshot& snapshot) {
  std::vector<TableSchema> users;
  for (const auto& table : snapshot.tables) {
    TableSchema schema = table->schema;
    bool uses = false;
    for (ColumnSchema& column : schema.columns) {
      if (!column.default_expression || SequenceOfDefault(*column.default_expression) != sequence) continue;
      column.default_expression.reset();
      uses = true;
    }
    if (uses) users.push_back(std::move(schema));
  }
  return users;
}

}  // namespace

Status BindDropSequence(const ParseNode& drop, int position, const Dialect& dialect, const Snapshot& snapshot,
                        Statement* out) {
  out->kind = Statement::Kind::kDropSequence;
  out->definition.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  TESSERA_ASSIGN(const Sequences all, All(dialect));
  const bool cascades = drop.Text(Field::k_behavior) == "DROP_CASCADE";
  for (const ParseNode& object : *drop.Get(Field::k_objects)) {
    TESSERA_ASSIGN(const std::string name, NameOfDropped(object, snapshot));
    const Sequence* const found = FindSequence(all, name);
    if (found == nullptr && out->definition.if_exists) continue;
    if (found == nullptr) return Absent(name, all, position);
    if (found->identity != Sequence::Identity::kNone) {
      return SqlError(
          ErrorKind::kDependentObjects,
          "cannot drop sequence \"" + name + "\": it gives the values of identity column \"" + found->column + "\"",
          position, "ALTER TABLE t ALTER COLUMN " + found->column + " DROP IDENTITY drops it.");
    }
    std::vector<TableSchema> users = WithoutDefaults(name, snapshot);
    if (!users.empty() && !cascades) {
      return SqlError(ErrorKind::kDependentObjects,
                      "cannot drop sequence \"" + name + "\": a DEFAULT of table \"" + users[0].name + "\" has it",
                      position, "Write DROP SEQUENCE " + QuotedName(name) + " CASCADE to drop that DEFAULT, too.");
    }
    out->definition.dependents.insert(out->definition.dependents.end(), users.begin(), users.end());
    out->definition.dropped_sequences.push_back(name);
    if (IsTemporaryName(name)) out->table = name;
  }
  const auto differs = [&](const std::string& name) { return IsTemporaryName(name) != IsTemporaryName(out->table); };
  if (std::ranges::any_of(out->definition.dropped_sequences, differs)) {
    return Unsupported("one statement for temporary sequences and others is not supported", position,
                       "Write a statement for each.");
  }
  return {};
}

Status BindRestart(const ParseNode& truncate, const Snapshot& snapshot, const Dialect& dialect, Statement* out) {
  if (truncate.Get(Field::k_restart_seqs) == nullptr) return {};
  TESSERA_ASSIGN(const Sequences all, All(dialect));
  for (const std::string& name : out->tables) {
    const std::shared_ptr<const TableInfo> table = snapshot.Find(name);
    for (Sequence sequence : all) {
      if (table == nullptr || sequence.table_id != table->id) continue;
      sequence.value = sequence.start;
      sequence.was_given = false;
      out->definition.sequences.push_back(std::move(sequence));
    }
  }
  return {};
}

std::optional<std::string> SequenceOfDefault(const ParseNode& expression, const Snapshot* snapshot) {
  const ParseNode* node = &expression;
  while (node->Is(Tag::kTypeCast)) node = node->Get(Field::k_arg);
  if (!node->Is(Tag::kFuncCall)) return std::nullopt;
  std::string_view name;
  for (const ParseNode& part : *node->Get(Field::k_funcname)) name = part.Text(Field::k_sval);
  const ParseNode* const args = node->Get(Field::k_args);
  if (name != "nextval" || args == nullptr || args->size() != 1) return std::nullopt;
  const ParseNode* arg = args->first();
  while (arg->Is(Tag::kTypeCast)) arg = arg->Get(Field::k_arg);
  const ParseNode* const text = arg->Is(Tag::kA_Const) ? arg->Get(Field::k_sval) : nullptr;
  if (text == nullptr) return std::nullopt;
  return NameOfText(text->Text(Field::k_sval), snapshot);
}

std::optional<std::string> SequenceOfDefault(const std::string& text) {
  if (!text.starts_with("nextval(")) return std::nullopt;
  const Result<ParsedStatement> parsed = Parse("SELECT " + text);
  if (!parsed.ok()) return std::nullopt;
  const ParseNode* const targets = parsed->statement->Get(Field::k_targetList);
  if (targets == nullptr || targets->size() != 1) return std::nullopt;
  return SequenceOfDefault(*targets->first()->Get(Field::k_val), nullptr);
}

std::string NextValueText(std::string_view sequence) { return "nextval(" + QuotedText(TextOfName(sequence)) + ")"; }

Status CheckSequenceExists(const std::string& name, const Dialect& dialect, int position) {
  TESSERA_ASSIGN(const Sequences all, All(dialect));
  return FindSequence(all, name) != nullptr ? Status::Ok() : Absent(name, all, position);
}

std::optional<SqlType> SerialType(const ParseNode& definition) {
  const ParseNode* const type = definition.Get(Field::k_typeName);
  const ParseNode* const names = type != nullptr ? type->Get(Field::k_names) : nullptr;
  if (names == nullptr || names->size() != 1) return std::nullopt;
  const std::string_view name = names->first()->Text(Field::k_sval);
  if (name == "serial" || name == "serial4") return SqlType::Of(TypeId::kInteger);
  if (name == "bigserial" || name == "serial8") return SqlType::Of(TypeId::kBigint);
  if (name == "smallserial" || name == "serial2") return SqlType::Of(TypeId::kSmallint);
  return std::nullopt;
}

namespace {

Sequence::Identity IdentityOf(const ParseNode& constraint) {
  return constraint.Text(Field::k_generated_when) == "a" ? Sequence::Identity::kAlways : Sequence::Identity::kByDefault;
}

}  // namespace

Status AddColumnSequence(const ParseNode* constraint, std::string_view sql, size_t number, int position,
                         const Dialect& dialect, const Snapshot& snapshot, TableSchema* schema, Sequences* sequences) {
  ColumnSchema& column = schema->columns[number];
  if (sequences == nullptr) {
    return Unsupported(
        std::string(constraint != nullptr ? "GENERATED AS IDENTITY" : "SERIAL") + " here is not supported", position,
        "CREATE SEQUENCE s, then DEFAULT nextval('s').");
  }
  const std::string type = column.type.ToString();
  if (BoundsOf(type) == nullptr)
    return SqlError(ErrorKind::kInvalidParameterValue, "identity column type must be smallint, integer, or bigint",
                    position);
  if (column.HasDefault())
    return SqlError(ErrorKind::kSyntax, "both default and identity specified for column \"" + column.name + "\"",
                    position);
  TESSERA_ASSIGN(Sequences all, All(dialect));
  const std::shared_ptr<const TableInfo> replaced = dialect.or_replace ? snapshot.Find(schema->name) : nullptr;
  if (replaced != nullptr) std::erase_if(all, [&](const Sequence& s) { return s.table_id == replaced->id; });
  Sequence sequence;
  sequence.name =
      NewName(QualifiedName(SchemaOfName(schema->name), BaseName(schema->name) + "_" + column.name + "_seq"), all,
              *sequences, snapshot);
  sequence.type = type;
  sequence.column = column.name;
  if (constraint != nullptr) sequence.identity = IdentityOf(*constraint);
  const ParseNode* const options = constraint != nullptr ? constraint->Get(Field::k_options) : nullptr;
  for (const ParseNode* o = options != nullptr ? options->first() : nullptr; o != nullptr; o = o->next()) {
    if (o->Text(Field::k_defname) != "sequence_name") continue;  // of a dump
    TESSERA_ASSIGN(sequence.name, NameOfDropped(*o->Get(Field::k_arg), snapshot));
    if (FindSequence(all, sequence.name) != nullptr || snapshot.Find(sequence.name) != nullptr)
      return SqlError(ErrorKind::kDuplicateTable, "relation \"" + sequence.name + "\" already exists", position);
  }
  const Status status = ReadOptions(options, sql, snapshot, true, &sequence);
  if (!status.ok()) return status.At(position);
  column.not_null = true;
  column.default_expression = NextValueText(sequence.name);
  sequences->push_back(std::move(sequence));
  return {};
}

const Sequence* IdentityOfColumn(const TableInfo& table, std::string_view column, const Sequences& sequences) {
  const auto is_it = [&](const Sequence& s) {
    return s.table_id == table.id && s.column == column && s.identity != Sequence::Identity::kNone;
  };
  const auto at = std::ranges::find_if(sequences, is_it);
  return at != sequences.end() ? &*at : nullptr;
}

Status SetIdentity(const ParseNode& options, std::string_view sql, const Sequence& identity, int position,
                   const Dialect& dialect, const Snapshot& snapshot, Sequences* sequences) {
  TESSERA_ASSIGN(const Sequences all, All(dialect));
  const Sequence* const now = FindSequence(all, identity.name);
  Sequence changed = now != nullptr ? *now : identity;
  for (const ParseNode& option : options) {
    if (option.Text(Field::k_defname) != "generated") continue;
    changed.identity =
        OptionText(option) == std::to_string('a') ? Sequence::Identity::kAlways : Sequence::Identity::kByDefault;
  }
  const Status status = ReadOptions(&options, sql, snapshot, false, &changed);
  if (!status.ok()) return status.At(position);
  sequences->push_back(std::move(changed));
  return {};
}

Status CheckIdentity(const TableInfo& table, int column, const Snapshot& snapshot, int position) {
  const ColumnSchema& schema = table.schema.columns[static_cast<size_t>(column)];
  if (!schema.default_expression) return {};
  const Sequence* const identity = IdentityOfColumn(table, schema.name, snapshot.names.sequences);
  if (identity == nullptr || identity->identity != Sequence::Identity::kAlways) return {};
  return SqlError(
      ErrorKind::kGeneratedAlways,
      "cannot insert a non-DEFAULT value into column \"" + schema.name + "\", which is GENERATED ALWAYS AS IDENTITY",
      position, "Write OVERRIDING SYSTEM VALUE in front of VALUES to override.");
}

Status CheckIdentityUpdate(const TableInfo& table, int column, const Snapshot& snapshot, int position) {
  const Status status = CheckIdentity(table, column, snapshot, position);
  if (status.ok()) return status;
  return SqlError(ErrorKind::kGeneratedAlways,
                  "column \"" + table.schema.columns[static_cast<size_t>(column)].name +
                      "\" can only be updated to DEFAULT: it is GENERATED ALWAYS AS IDENTITY",
                  position, "ALTER TABLE t ALTER COLUMN c SET GENERATED BY DEFAULT lets it have other values.");
}

}  // namespace tessera
