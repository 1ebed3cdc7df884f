// Sequences, and what they give; schemas; comments: how the catalog keeps them.
#include <algorithm>
#include <string>
#include <utility>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/catalog_transaction.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/sequence.h"

namespace tessera {
namespace {

constexpr int kVersionWithNames = 10;

}  // namespace

Result<int64_t> NextOf(Sequence* sequence) {
  if (!sequence->was_given) {
    sequence->was_given = true;
    return sequence->value;
  }
  const int128_t next = int128_t{sequence->value} + sequence->increment;
  const bool rises = sequence->increment > 0;
  if (next >= sequence->least && next <= sequence->greatest) {
    sequence->value = static_cast<int64_t>(next);
  } else if (sequence->cycles) {
    sequence->value = rises ? sequence->least : sequence->greatest;
  } else {
    return SqlError("nextval: reached " + std::string(rises ? "maximum" : "minimum") + " value of sequence \"" +
                        sequence->name + "\" (" + std::to_string(rises ? sequence->greatest : sequence->least) + ")",
                    -1, "ALTER SEQUENCE " + sequence->name + " RESTART begins anew.");
  }
  return sequence->value;
}

bool IsSameButForValue(Sequence a, const Sequence& b) {
  a.value = b.value;
  a.was_given = b.was_given;
  return a == b;
}

Status CheckSequence(const Sequence& s) {
  const auto number = [](int64_t n) { return std::to_string(n); };
  if (s.increment == 0) return SqlError("INCREMENT must not be zero");
  if (s.least >= s.greatest) {
    return SqlError("MINVALUE (" + number(s.least) + ") must be less than MAXVALUE (" + number(s.greatest) + ")");
  }
  for (const auto& [what, n] : {std::pair("START", s.start), std::pair("RESTART", s.value)}) {
    if (n < s.least)
      return SqlError(std::string(what) + " value (" + number(n) + ") cannot be less than MINVALUE (" +
                      number(s.least) + ")");
    if (n > s.greatest)
      return SqlError(std::string(what) + " value (" + number(n) + ") cannot be greater than MAXVALUE (" +
                      number(s.greatest) + ")");
  }
  return {};
}

const char Catalog::kSequencesSchema[] = R"(
CREATE TABLE sequences (
  name       TEXT PRIMARY KEY,
  type       TEXT NOT NULL,
  start      INTEGER NOT NULL,
  increment  INTEGER NOT NULL,
  least      INTEGER NOT NULL,
  greatest   INTEGER NOT NULL,
  cycles     INTEGER NOT NULL,
  value      INTEGER NOT NULL,
  was_given  INTEGER NOT NULL,
  table_id   INTEGER NOT NULL,
  column     TEXT NOT NULL,
  identity   TEXT NOT NULL
);
)";

Status Catalog::LoadSequences(Sequences* sequences) {
  TESSERA_ASSIGN(const bool has_sequences, HasTable("sequences"));
  if (!has_sequences) return {};
  CatalogStatement query(
      &file_,
      "SELECT name, type, start, increment, least, greatest, cycles, value, was_given, table_id, column, "
      "identity FROM sequences NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(const bool row, query.Step());
    if (!row) break;
    Sequence s;
    s.name = query.Text(0);
    s.type = query.Text(1);
    s.start = query.Integer(2, INT64_MIN, INT64_MAX);
    s.increment = query.Integer(3, INT64_MIN, INT64_MAX);
    s.least = query.Integer(4, INT64_MIN, INT64_MAX);
    s.greatest = query.Integer(5, INT64_MIN, INT64_MAX);
    s.cycles = query.Integer(6, 0, 1) == 1;
    s.value = query.Integer(7, INT64_MIN, INT64_MAX);
    s.was_given = query.Integer(8, 0, 1) == 1;
    s.table_id = query.Integer(9, 0, INT64_MAX);
    s.column = query.Text(10);
    const std::string identity = query.Text(11);
    if (!query.wrong().empty()) return file_.Corrupt("a sequence has " + query.wrong());
    s.identity = identity == "a"   ? Sequence::Identity::kAlways
                 : identity == "d" ? Sequence::Identity::kByDefault
                                   : Sequence::Identity::kNone;
    if (Status status = CheckSequence(s); !status.ok()) return file_.Corrupt(status.message());
    sequences->push_back(std::move(s));
  }
  std::ranges::sort(*sequences, {}, &Sequence::name);
  return {};
}

Status Catalog::WriteSequences(const Sequences& sequences) {
  TESSERA_ASSIGN(const bool has_sequences, HasTable("sequences"));
  if (!has_sequences) {
    if (sequences.empty()) return {};
    TESSERA_TRY(file_.Execute(kSequencesSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithNames));
  }
  TESSERA_TRY(file_.Execute("DELETE FROM sequences"));
  CatalogStatement insert(&file_, "INSERT INTO sequences VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const Sequence& s : sequences) {
    insert.Bind(std::string_view(s.name)).Bind(std::string_view(s.type));
    for (const int64_t n :
         {s.start, s.increment, s.least, s.greatest, int64_t{s.cycles}, s.value, int64_t{s.was_given}, s.table_id})
      insert.Bind(n);
    const char identity = static_cast<char>(s.identity);
    TESSERA_TRY(insert.Bind(std::string_view(s.column)).Bind(std::string_view(&identity, 1)).Run());
  }
  return {};
}

const char Catalog::kSchemasSchema[] = R"(
CREATE TABLE schemas (
  name  TEXT PRIMARY KEY
);
)";

const char Catalog::kCommentsSchema[] = R"(
CREATE TABLE comments (
  kind    TEXT NOT NULL,
  name    TEXT NOT NULL,
  column  TEXT NOT NULL,
  text    TEXT NOT NULL,
  PRIMARY KEY (kind, name, column)
);
)";

Status Catalog::LoadNames(CatalogNames* names) {
  TESSERA_TRY(LoadSequences(&names->sequences));
  TESSERA_ASSIGN(const bool has_schemas, HasTable("schemas"));
  if (has_schemas) {
    CatalogStatement query(&file_, "SELECT name FROM schemas NOT INDEXED");
    for (;;) {
      TESSERA_ASSIGN(const bool row, query.Step());
      if (!row) break;
      names->schemas.push_back(query.Text(0));
    }
    if (!query.wrong().empty()) return file_.Corrupt("a schema has " + query.wrong());
    std::ranges::sort(names->schemas);
  }
  TESSERA_TRY(LoadRoles(names));
  TESSERA_ASSIGN(const bool has_comments, HasTable("comments"));
  if (!has_comments) return {};
  CatalogStatement query(&file_, "SELECT kind, name, column, text FROM comments NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(const bool row, query.Step());
    if (!row) break;
    names->comments.push_back({query.Text(0), query.Text(1), query.Text(2), query.Text(3)});
  }
  if (!query.wrong().empty()) return file_.Corrupt("a comment has " + query.wrong());
  std::ranges::sort(names->comments);
  return {};
}

Status Catalog::WriteSchemas(const std::vector<std::string>& schemas) {
  TESSERA_ASSIGN(const bool has_schemas, HasTable("schemas"));
  if (!has_schemas) {
    if (schemas.empty()) return {};
    TESSERA_TRY(file_.Execute(kSchemasSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithNames));
  }
  TESSERA_TRY(file_.Execute("DELETE FROM schemas"));
  CatalogStatement insert(&file_, "INSERT INTO schemas VALUES (?)");
  for (const std::string& schema : schemas) TESSERA_TRY(insert.Bind(std::string_view(schema)).Run());
  return {};
}

Status Catalog::WriteComments(const Comments& comments) {
  TESSERA_ASSIGN(const bool has_comments, HasTable("comments"));
  if (!has_comments) {
    if (comments.empty()) return {};
    TESSERA_TRY(file_.Execute(kCommentsSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithNames));
  }
  TESSERA_TRY(file_.Execute("DELETE FROM comments"));
  CatalogStatement insert(&file_, "INSERT INTO comments VALUES (?, ?, ?, ?)");
  for (const Comment& c : comments) {
    for (const std::string* text : {&c.kind, &c.name, &c.column, &c.text}) insert.Bind(std::string_view(*text));
    TESSERA_TRY(insert.Run());
  }
  return {};
}

Status Catalog::WriteNames(const CatalogNames& names) {
  TESSERA_TRY(WriteSequences(names.sequences));
  TESSERA_TRY(WriteSchemas(names.schemas));
  TESSERA_TRY(WriteRoles(names));
  return WriteComments(names.comments);
}

Status CheckSchemaExists(const CatalogNames& names, std::string_view qualified) {
  const std::string_view schema = SchemaOfName(qualified);
  if (schema.empty() || schema == kTemporarySchema || std::ranges::count(names.schemas, schema) > 0) return {};
  return SqlError(ErrorKind::kUndefinedSchema, "schema \"" + std::string(schema) + "\" does not exist");
}

Status Catalog::CheckNewName(const CatalogContents& state, const std::string& name) {
  TESSERA_TRY(CheckSchemaExists(state.names, name));
  if (FindView(state.views, name) != nullptr)
    return SqlError(ErrorKind::kWrongObjectType, "\"" + name + "\" is a view", -1, "DROP VIEW removes it.");
  if (FindSequence(state.names.sequences, name) != nullptr)
    return SqlError(ErrorKind::kDuplicateTable, "sequence \"" + name + "\" already exists", -1,
                    "DROP SEQUENCE removes it.");
  return {};
}

Status Catalog::DropSequencesOf(int64_t table_id, CatalogContents* after) {
  const auto is_its = [&](const Sequence& s) { return s.table_id == table_id; };
  if (std::erase_if(after->names.sequences, is_its) == 0) return {};
  TESSERA_TRY(WriteSequences(after->names.sequences));
  return DropLeftComments(after);
}

Status Catalog::TakeOverSequences(int64_t replaced, const TableRecord& table, CatalogContents* after) {
  for (Sequence& s : after->names.sequences) {
    const int column = s.table_id == replaced ? table.schema.Find(s.column) : -1;
    if (column < 0) continue;
    const auto& text = table.schema.columns[static_cast<size_t>(column)].default_expression;
    if (!text || !text->starts_with("nextval(")) continue;
    s.table_id = table.id;
    TESSERA_TRY(WriteSequences(after->names.sequences));
  }
  return DropSequencesOf(replaced, after);
}

Status Catalog::DropSequencesWithoutColumn(const TableRecord& table, CatalogContents* after) {
  const auto is_left = [&](const Sequence& s) { return s.table_id == table.id && table.schema.Find(s.column) < 0; };
  if (std::erase_if(after->names.sequences, is_left) == 0) return {};
  TESSERA_TRY(WriteSequences(after->names.sequences));
  return DropLeftComments(after);
}

Status Catalog::DropLeftComments(CatalogContents* after) {
  const auto is_left = [&](const Comment& c) {
    if (c.kind == "sequence") return FindSequence(after->names.sequences, c.name) == nullptr;
    if (c.kind == "schema") return c.name != "public" && std::ranges::count(after->names.schemas, c.name) == 0;
    if (c.kind == "type") return std::ranges::count(after->types, c.name, &EnumType::name) == 0;
    if (c.kind == "macro") return std::ranges::count(after->macros, c.name, &Macro::name) == 0;
    const ViewSchema* const view = FindView(after->views, c.name);
    return view == nullptr ||
           (!c.column.empty() && std::ranges::count(view->columns, c.column, &ViewColumn::name) == 0);
  };
  if (std::erase_if(after->names.comments, is_left) == 0) return {};
  return WriteComments(after->names.comments);
}

Result<Durability> Catalog::SetNames(const CatalogContents& state, CatalogNames names) {
  CatalogContents after = state;
  after.names = std::move(names);
  std::erase_if(after.names.grants, [&](const TableGrant& g) {
    return std::ranges::none_of(state.tables, [&](const auto& table) { return table->id == g.table_id; });
  });
  const bool values_alone = DifferInValuesAlone(state.names, after.names);
  if (held_ != nullptr && values_alone) {
    held_->now.contents = std::move(after);
    held_->has_changed = true;
    return Durability::kDurable;
  }
  const bool starts_log = values_alone && PrepareLog(state.database);
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  if (starts_log) TESSERA_TRY(WriteFirstGeneration());
  if (values_alone && !is_open_) TESSERA_TRY(RaiseVersion(kVersionWithSeveral));
  if (after.names.sequences != state.names.sequences) TESSERA_TRY(WriteSequences(after.names.sequences));
  if (after.names.schemas != state.names.schemas) TESSERA_TRY(WriteSchemas(after.names.schemas));
  if (after.names.roles != state.names.roles || after.names.grants != state.names.grants)
    TESSERA_TRY(WriteRoles(after.names));
  if (after.names.comments != state.names.comments) TESSERA_TRY(WriteComments(after.names.comments));
  TESSERA_TRY(DropLeftComments(&after));
  return Commit(&transaction, after);
}

}  // namespace tessera
