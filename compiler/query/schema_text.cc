#include "compiler/query/schema_text.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "compiler/parse/sql_scanner.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/load/tablet_cutter.h"

namespace tessera {
namespace {

// The words that PostgreSQL 15 never takes as a column or table name unquoted, each between blanks.
constexpr std::string_view kReserved =
    " all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate"
    " collation column concurrently constraint create cross current_catalog current_date current_role"
    " current_schema current_time current_timestamp current_user default deferrable desc distinct do else end"
    " except false fetch for foreign freeze from full grant group having ilike in initially inner intersect into"
    " is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null offset on"
    " only or order outer overlaps placing primary references returning right select session_user similar some"
    " symmetric table tablesample then to trailing true union unique user using variadic verbose when where window"
    " with ";

/// The names and words of a query, as names are folded.
std::set<std::string> WordsOf(std::string_view sql) {
  std::set<std::string> words;
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    std::string word(sql.substr(t.begin, t.end - t.begin));
    if (t.kind == Token::Kind::kWord) {
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    } else if (t.kind == Token::Kind::kQuoted && word[0] == '"') {
      word = word.substr(1, word.size() - 2);
    } else {
      continue;
    }
    words.insert(std::move(word));
  }
  return words;
}

std::string CommentText(const std::string& what, const std::string& text) {
  return text.empty() ? "" : "COMMENT ON " + what + " IS " + QuotedText(text) + ";\n";
}

/// `what`: as COMMENT ON has it.
std::string CommentsText(const Comments& comments, std::string_view kind, const std::string& name, const char* what) {
  std::string text;
  for (const Comment& c : comments) {
    if (c.kind != kind || c.name != name) continue;
    const std::string of_column = "COLUMN " + QuotedName(name) + "." + QuotedName(c.column);
    text += CommentText(c.column.empty() ? std::string(what) + " " + QuotedName(name) : of_column, c.text);
  }
  return text;
}

/// Those of a table and its columns.
std::string CommentsText(const TableSchema& schema) {
  const std::string name = QuotedName(schema.name);
  std::string text = CommentText((schema.materialized ? "MATERIALIZED VIEW " : "TABLE ") + name, schema.comment);
  for (const ColumnSchema& column : schema.columns)
    text += CommentText("COLUMN " + name + "." + QuotedName(column.name), column.comment);
  return text;
}

void AddViewsAndMacros(const Views& views, const std::vector<const TableInfo*>& materialized,
                       const std::vector<Macro>& macros, const CatalogNames& names, std::vector<SchemaEntry>* entries,
                       std::vector<std::set<std::string>>* words) {
  for (const auto& view : views) {
    const std::string comments = view->temporary ? "" : CommentsText(names.comments, "view", view->name, "VIEW");
    entries->push_back({view->name, CreateViewText(*view) + comments});
    words->push_back(WordsOf(view->query));
  }
  for (const TableInfo* table : materialized) {
    entries->push_back({table->schema.name, CreateTableText(table->schema) + CommentsText(table->schema)});
    words->push_back(WordsOf(table->schema.materialized->text));
  }
  for (const Macro& macro : macros) {
    entries->push_back(
        {macro.name, CreateMacroText(macro) + CommentsText(names.comments, "macro", macro.name, "FUNCTION")});
    words->push_back(WordsOf(macro.definition));
  }
}

/// Each after those that its words name, else as they stand.
std::vector<SchemaEntry> InOrder(const std::vector<SchemaEntry>& entries,
                                 const std::vector<std::set<std::string>>& words) {
  std::vector<SchemaEntry> ordered;
  std::vector<bool> done(entries.size());
  // What is named like one need not be it: where that seems to be a circle, the first goes on.
  for (bool forced = false; ordered.size() < entries.size();) {
    const size_t before = ordered.size();
    for (size_t i = 0; i < entries.size(); ++i) {
      bool ready = !done[i];
      for (size_t k = 0; k < entries.size() && ready && !forced; ++k)
        ready = k == i || done[k] || !words[i].contains(BaseName(entries[k].name));
      if (!ready) continue;
      done[i] = true;
      forced = false;
      ordered.push_back(entries[i]);
    }
    forced = ordered.size() == before;
  }
  return ordered;
}

}  // namespace

std::vector<SchemaEntry> InOrderOfUse(const Views& views, const std::vector<const TableInfo*>& materialized,
                                      const std::vector<Macro>& macros, const CatalogNames& names) {
  std::vector<SchemaEntry> entries;
  std::vector<std::set<std::string>> words;
  AddViewsAndMacros(views, materialized, macros, names, &entries, &words);
  return InOrder(entries, words);
}

std::vector<SchemaEntry> WholeSchema(const Snapshot& snapshot) {
  std::vector<SchemaEntry> entries;
  std::vector<std::set<std::string>> words;
  const CatalogNames& names = snapshot.names;
  std::string schemas = CommentsText(names.comments, "schema", "public", "SCHEMA");
  for (const std::string& schema : names.schemas) {
    schemas += "CREATE SCHEMA " + QuotedName(schema) + ";\n";
    schemas += CommentsText(names.comments, "schema", schema, "SCHEMA");
  }
  for (const EnumType& type : snapshot.types) {
    entries.push_back({type.name, CreateTypeText(type) + CommentsText(names.comments, "type", type.name, "TYPE")});
    words.emplace_back();
  }
  // (A DEFAULT names a sequence in a text.)
  for (const Sequence& sequence : names.sequences) {
    if (sequence.table_id == 0 && !IsTemporaryName(sequence.name))
      schemas += CreateSequenceText(sequence) + CommentsText(names.comments, "sequence", sequence.name, "SEQUENCE");
  }
  for (const std::shared_ptr<const TableInfo>& table : snapshot.tables) {
    entries.push_back({table->schema.name, WholeTableText(*table, names, true), table});
    words.push_back(WordsOf(entries.back().text));
  }
  Views views;
  std::ranges::copy_if(snapshot.views, std::back_inserter(views), [](const auto& view) { return !view->temporary; });
  AddViewsAndMacros(views, {}, snapshot.macros, names, &entries, &words);
  std::vector<SchemaEntry> ordered = InOrder(entries, words);
  if (!schemas.empty()) ordered.insert(ordered.begin(), SchemaEntry{"", std::move(schemas)});
  return ordered;
}

std::string CreateTypeText(const EnumType& type) {
  std::string labels;
  for (const std::string& label : type.labels) labels += (labels.empty() ? "" : ", ") + QuotedText(label);
  return "CREATE TYPE " + QuotedName(type.name) + " AS ENUM (" + labels + ");\n";
}

std::string CreateViewText(const ViewSchema& view) {
  std::string out = view.temporary ? "CREATE TEMP VIEW " : "CREATE VIEW ";
  out += QuotedName(view.name);
  const auto renamed = [](const ViewColumn& column) { return column.name != column.output; };
  if (std::any_of(view.columns.begin(), view.columns.end(), renamed)) {
    std::string list;
    for (const ViewColumn& column : view.columns) list += (list.empty() ? "" : ", ") + QuotedName(column.name);
    out += " (" + list + ")";
  }
  return out + " AS\n" + view.query + ";\n";
}

std::string QuotedName(std::string_view name) {
  if (const std::string_view schema = SchemaOfName(name); !schema.empty())
    return QuotedName(schema) + "." + QuotedName(BaseName(name));
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const bool word =
      !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), plain);
  if (word && kReserved.find(" " + std::string(name) + " ") == std::string_view::npos) return std::string(name);
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string QuotedText(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + '\'';
}

std::string_view ActionText(ForeignKey::Action action) {
  constexpr std::string_view kTexts[] = {"NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"};
  return kTexts[static_cast<size_t>(action)];
}

std::string ReferencesText(const ForeignKey& key) {
  std::string to;
  for (const std::string& column : key.to) to += (to.empty() ? "" : ", ") + QuotedName(column);
  std::string out = "REFERENCES " + QuotedName(key.referenced) + " (" + to + ")";
  const auto add = [&](const char* when, ForeignKey::Action action) {
    if (action != ForeignKey::Action::kNoAction) out += when + std::string(ActionText(action));
  };
  add(" ON DELETE ", key.on_delete);
  add(" ON UPDATE ", key.on_update);
  return out + (key.deferred ? " DEFERRABLE INITIALLY DEFERRED" : key.deferrable ? " DEFERRABLE" : "");
}

std::string AddForeignKeyText(const TableSchema& schema, const ForeignKey& key) {
  std::string names;
  for (const int c : key.columns)
    names += (names.empty() ? "" : ", ") + QuotedName(schema.columns[static_cast<size_t>(c)].name);
  return "ALTER TABLE " + QuotedName(schema.name) + " ADD CONSTRAINT " + QuotedName(key.name) + " FOREIGN KEY (" +
         names + ") " + ReferencesText(key) + ";\n";
}

std::string CreateTableText(const TableSchema& schema) {
  if (schema.materialized) {
    std::string list;
    for (const ColumnSchema& column : schema.columns) list += (list.empty() ? "" : ", ") + QuotedName(column.name);
    return "CREATE MATERIALIZED VIEW " + QuotedName(schema.name) + " (" + list + ") AS\n" + schema.materialized->text +
           (schema.materialized->populated ? "" : "\nWITH NO DATA") + ";\n";
  }
  const bool temporary = IsTemporaryName(schema.name);
  std::string out = temporary ? "CREATE TEMP TABLE " : "CREATE TABLE ";
  out += QuotedName(temporary ? BaseName(schema.name) : schema.name) + " (\n";
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    const ColumnSchema& column = schema.columns[i];
    out += (i == 0 ? "  " : ",\n  ") + QuotedName(column.name) + " " + column.type.ToString() +
           (column.not_null ? " NOT NULL" : "");
    if (column.default_text) out += " DEFAULT " + QuotedText(*column.default_text);
    if (column.default_expression) out += " DEFAULT " + *column.default_expression;
    if (column.generated_text) out += " GENERATED ALWAYS AS (" + *column.generated_text + ") STORED";
  }
  const auto names = [&](const std::vector<int>& columns) {
    std::string list;
    for (const int c : columns)
      list += (list.empty() ? "" : ", ") + QuotedName(schema.columns[static_cast<size_t>(c)].name);
    return "(" + list + ")";
  };
  if (!schema.primary_key.empty()) out += ",\n  PRIMARY KEY " + names(schema.primary_key);
  for (const UniqueKey& key : schema.unique_keys)
    out += ",\n  CONSTRAINT " + QuotedName(key.name) + " UNIQUE " + names(key.columns);
  for (const CheckConstraint& check : schema.checks)
    out += ",\n  CONSTRAINT " + QuotedName(check.name) + " CHECK (" + check.text + ")";
  for (const ForeignKey& key : schema.foreign_keys)
    out += ",\n  CONSTRAINT " + QuotedName(key.name) + " FOREIGN KEY " + names(key.columns) + " " + ReferencesText(key);
  out += "\n)";
  std::string options;
  if (schema.tablet_rows > 0) options = "tablet_rows = " + std::to_string(schema.tablet_rows);
  const auto add_columns = [&](const char* option, const std::vector<int>& columns) {
    if (columns.empty()) return;
    std::string list;
    for (const int c : columns) list += (list.empty() ? "" : ", ") + schema.columns[static_cast<size_t>(c)].name;
    options += (options.empty() ? "" : ", ") + std::string(option) + " = " + QuotedText(list);
  };
  add_columns("cluster_by", schema.cluster_by);
  add_columns("distribute_by", schema.distribute_by);
  return out + (options.empty() ? "" : " WITH (" + options + ")") + ";\n";
}

std::string CreateSequenceText(const Sequence& s) {
  const auto number = [](int64_t n) { return std::to_string(n); };
  return "CREATE SEQUENCE " + QuotedName(s.name) + " AS " + s.type + " INCREMENT " + number(s.increment) +
         " MINVALUE " + number(s.least) + " MAXVALUE " + number(s.greatest) + " START " + number(s.start) +
         (s.cycles ? " CYCLE" : "") + ";\n";
}

std::string SetSequenceText(const Sequence& s) {
  return "SELECT setval(" + QuotedText(QuotedName(s.name)) + ", " + std::to_string(s.value) +
         (s.was_given ? "" : ", FALSE") + ");\n";
}

namespace {

/// ALTER TABLE ... ADD GENERATED AS IDENTITY.
std::string IdentityText(const std::string& table, const Sequence& s) {
  const std::string options = CreateSequenceText(s);
  const size_t increment = options.find(" INCREMENT ");
  return "ALTER TABLE " + table + " ALTER COLUMN " + QuotedName(s.column) + " ADD GENERATED " +
         (s.identity == Sequence::Identity::kAlways ? "ALWAYS" : "BY DEFAULT") + " AS IDENTITY (SEQUENCE NAME " +
         QuotedName(s.name) + options.substr(increment, options.rfind(';') - increment) + ");\n";
}

std::string TableText(TableSchema schema, const TableInfo& table, const CatalogNames& names) {
  std::string before, after;
  const std::string name = QuotedName(schema.name);
  for (const Sequence& s : names.sequences) {
    if (s.table_id != table.id || IsTemporaryName(schema.name)) continue;
    const int column = schema.Find(s.column);
    if (s.identity != Sequence::Identity::kNone && column >= 0) {
      schema.columns[static_cast<size_t>(column)].default_expression.reset();
      after += IdentityText(name, s);
    } else {
      before += CreateSequenceText(s);
      after += "ALTER SEQUENCE " + QuotedName(s.name) + " OWNED BY " + name + "." + QuotedName(s.column) + ";\n";
    }
    after += CommentsText(names.comments, "sequence", s.name, "SEQUENCE");
  }
  return before + CreateTableText(schema) + after + CommentsText(schema);
}

}  // namespace

std::string WholeTableText(const TableInfo& table, const CatalogNames& names, bool without_keys) {
  TableSchema schema = table.schema;
  // (A size that the rows have led to need not be said: it would hold for other rows, too.)
  if (schema.tablet_rows == ChooseTabletRows(table.rows)) schema.tablet_rows = 0;
  if (without_keys) schema.foreign_keys.clear();
  return TableText(std::move(schema), table, names);
}

std::string CreateTablesText(std::vector<const TableInfo*> tables, const CatalogNames& names) {
  std::string out, added;
  const auto is_left = [&](const std::string& name) {
    return std::ranges::any_of(tables, [&](const TableInfo* table) { return table->schema.name == name; });
  };
  while (!tables.empty()) {
    const auto is_ready = [&](const TableInfo* table) {
      return std::ranges::none_of(table->schema.foreign_keys, [&](const ForeignKey& key) {
        return key.referenced != table->schema.name && is_left(key.referenced);
      });
    };
    auto at = std::ranges::find_if(tables, is_ready);
    TableSchema schema = (*(at != tables.end() ? at : tables.begin()))->schema;
    if (at == tables.end()) {
      at = tables.begin();
      std::erase_if(schema.foreign_keys, [&](const ForeignKey& key) {
        if (key.referenced == schema.name || !is_left(key.referenced)) return false;
        added += AddForeignKeyText(schema, key);
        return true;
      });
    }
    out += TableText(std::move(schema), **at, names);
    tables.erase(at);
  }
  return out + added;
}

std::string CreateMacroText(const Macro& macro) {
  return "CREATE MACRO " + QuotedName(macro.name) + macro.definition + ";\n";
}

}  // namespace tessera
