// The rest of pg_catalog: what PostgreSQL says of the server, definitions as SQL, and tables that clients read and that
// are empty here.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/query/schema_text.h"

namespace tessera {
namespace {

using Rows = std::vector<std::vector<Value>>;

constexpr TypeId kText = TypeId::kText, kNumber = TypeId::kBigint, kFlag = TypeId::kBoolean;
constexpr const char* kSchema = "pg_catalog";
constexpr int64_t kOwner = 10, kPublic = 2200, kUtf8 = 6;
constexpr int64_t kFirstFunction = int64_t{3} << 29, kFirstDefault = int64_t{1} << 31;

Rows NoRows(const Snapshot&) { return {}; }

std::string NamesOf(const CatalogConstraint& c) {
  std::string names;
  for (const int column : c.columns)
    names += (names.empty() ? "" : ", ") + QuotedName(c.table->schema.columns[static_cast<size_t>(column)].name);
  return names;
}

/// (a, b := 2) of "(a, b := 2) AS a + b"
std::string ParametersOf(const Macro& macro) {
  size_t end = 0;
  for (int depth = 0; end < macro.definition.size(); ++end) {
    depth += macro.definition[end] == '(' ? 1 : macro.definition[end] == ')' ? -1 : 0;
    if (depth == 0 && macro.definition[end] == ')') break;
  }
  const size_t begin = macro.definition.find('(');
  return begin == std::string::npos || begin >= end ? "" : macro.definition.substr(begin + 1, end - begin - 1);
}

std::string IndexText(const CatalogConstraint& c) {
  const std::string& table = c.table->schema.name;
  return "CREATE UNIQUE INDEX " + QuotedName(c.name) + " ON " + ShownSchema(table) + "." + QuotedName(BaseName(table)) +
         " USING btree (" + NamesOf(c) + ")";
}

/// What pg_get_constraintdef and its kin give. `kind`: c, a constraint; i, an index; v, a view; f, a function's arguments.
Rows Definitions(const Snapshot& snapshot) {
  Rows rows;
  const auto add = [&](int64_t oid, const char* kind, std::string text) {
    rows.push_back({CatalogNumber(oid), CatalogText(kind), CatalogText(std::move(text))});
  };
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    const std::string names = NamesOf(c);
    if (c.kind == 'c') {
      add(c.oid, "c", "CHECK (" + c.check + ")");
      continue;
    }
    if (c.foreign != nullptr) {
      // (Clients look for PostgreSQL's text, which has no blank after the name.)
      std::string references = ReferencesText(*c.foreign);
      references.erase(("REFERENCES " + QuotedName(c.foreign->referenced)).size(), 1);
      add(c.oid, "c", "FOREIGN KEY (" + names + ") " + references);
      continue;
    }
    add(c.oid, "c", (c.kind == 'p' ? "PRIMARY KEY (" : "UNIQUE (") + names + ")");
    add(c.oid, "i", IndexText(c));
  }
  for (const auto& table : snapshot.tables) {
    if (table->schema.materialized) add(OidOf(*table), "v", table->schema.materialized->text + ";");
  }
  for (size_t v = 0; v < snapshot.views.size(); ++v) add(OidOfView(v), "v", snapshot.views[v]->query + ";");
  for (size_t m = 0; m < snapshot.macros.size(); ++m)
    add(kFirstFunction + static_cast<int64_t>(m), "f", ParametersOf(snapshot.macros[m]));
  return rows;
}

Rows PgAttrdef(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogColumnOf& c : CatalogColumnsOf(snapshot)) {
    if (c.schema == nullptr || (!c.schema->generated_text && !c.schema->HasDefault())) continue;
    if (c.identity != ' ') continue;
    const std::string text = c.schema->generated_text                              ? *c.schema->generated_text
                             : c.schema->default_text && c.schema->type.IsQuoted() ? QuotedText(*c.schema->default_text)
                             : c.schema->default_text                              ? *c.schema->default_text
                                                      : c.schema->default_expression.value_or("");
    rows.push_back({CatalogNumber(kFirstDefault + c.relation_oid * 8192 + c.number), CatalogNumber(c.relation_oid),
                    CatalogNumber(c.number), CatalogText(text)});
  }
  return rows;
}

Rows PgProc(const Snapshot& snapshot) {
  Rows rows;
  for (size_t m = 0; m < snapshot.macros.size(); ++m) {
    const Macro& macro = snapshot.macros[m];
    const std::string parameters = ParametersOf(macro);
    const auto count = parameters.empty() ? 0 : std::ranges::count(parameters, ',') + 1;
    rows.push_back({CatalogNumber(kFirstFunction + static_cast<int64_t>(m)), CatalogText(macro.name),
                    CatalogNumber(kPublic), CatalogNumber(kOwner), CatalogNumber(14), CatalogText("f"),
                    CatalogFlag(macro.of_rows), CatalogNumber(count), CatalogText(CreateMacroText(macro)),
                    CatalogText("i"), NoText(), CatalogText("u"), CatalogFlag(false), CatalogNumber(0), CatalogText(""),
                    NoText(), NoText(), NoText()});
  }
  return rows;
}

Rows PgEnum(const Snapshot& snapshot) {
  Rows rows;
  for (const EnumType& type : snapshot.types) {
    const int64_t oid = OidOfEnum(type.name);
    for (size_t i = 0; i < type.labels.size(); ++i) {
      rows.push_back({CatalogNumber(oid * 4096 + static_cast<int64_t>(i)), CatalogNumber(oid),
                      Value::Float(SqlType::Of(TypeId::kDouble), static_cast<double>(i + 1)),
                      CatalogText(type.labels[i])});
    }
  }
  return rows;
}

Rows PgIndexes(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (!c.IsIndex()) continue;
    rows.push_back({CatalogText(SchemaOf(*c.table)), CatalogText(BaseName(c.table->schema.name)), CatalogText(c.name),
                    NoText(), CatalogText(IndexText(c))});
  }
  return rows;
}

Rows PgAm(const Snapshot&) {
  return {{CatalogNumber(2), CatalogText("heap"), CatalogText("t")},
          {CatalogNumber(403), CatalogText("btree"), CatalogText("i")}};
}

Rows PgRoles(const Snapshot& snapshot) {
  const auto row = [](int64_t oid, const std::string& name, bool superuser, bool logs_in) {
    return std::vector<Value>{CatalogNumber(oid),     CatalogText(name),
                              CatalogFlag(superuser), CatalogFlag(true),
                              CatalogFlag(superuser), CatalogFlag(superuser),
                              CatalogFlag(logs_in),   CatalogFlag(false),
                              CatalogNumber(-1),      NoText(),
                              CatalogFlag(superuser), NoText()};
  };
  Rows rows = {row(kOwner, kTheDatabase, true, true)};
  for (const CatalogRole& role : snapshot.names.roles)
    rows.push_back(row(OidOfRole(role.name), role.name, role.superuser, role.logs_in));
  return rows;
}

Rows PgUser(const Snapshot&) {
  return {{CatalogText(kTheDatabase), CatalogNumber(kOwner), CatalogFlag(true), CatalogFlag(true), CatalogFlag(false),
           CatalogFlag(true), NoText(), NoText(), NoText()}};
}

Rows PgDatabase(const Snapshot&) {
  return {{CatalogNumber(1), CatalogText(kTheDatabase), CatalogNumber(kOwner), CatalogNumber(kUtf8), CatalogText("c"),
           CatalogText("C"), CatalogText("C"), NoText(), CatalogFlag(false), CatalogFlag(true), CatalogNumber(-1),
           CatalogNumber(1663), NoText()}};
}

/// Settings of PostgreSQL that clients ask, as they hold here.
constexpr std::pair<const char*, const char*> kSettings[] = {
    {"client_encoding", "UTF8"},
    {"DateStyle", "ISO, MDY"},
    {"integer_datetimes", "on"},
    {"IntervalStyle", "postgres"},
    {"lc_collate", "C"},
    {"lc_ctype", "C"},
    {"max_identifier_length", "63"},
    {"max_index_keys", "32"},
    {"server_encoding", "UTF8"},
    {"server_version", "15.0"},
    {"server_version_num", "150000"},
    {"standard_conforming_strings", "on"},
};

Rows PgSettings(const Snapshot& snapshot) {
  Rows rows;
  const auto add = [&](const char* name, const std::string& value) {
    rows.push_back({CatalogText(name), CatalogText(value), NoText(), CatalogText("internal"), CatalogText("")});
  };
  for (const auto& [name, value] : kSettings) add(name, value);
  add("search_path", PathText(snapshot));
  return rows;
}

Rows PgCollation(const Snapshot&) {
  Rows rows;
  for (const auto& [oid, name] : {std::pair<int64_t, const char*>(100, "default"), {950, "C"}, {951, "POSIX"}}) {
    rows.push_back({CatalogNumber(oid), CatalogText(name), CatalogNumber(11), CatalogText("c"), CatalogFlag(true),
                    CatalogNumber(kUtf8), CatalogText("C"), CatalogText("C")});
  }
  return rows;
}

/// That of macros.
Rows PgLanguage(const Snapshot&) {
  return {{CatalogNumber(14), CatalogText("sql"), CatalogNumber(kOwner), CatalogFlag(true), NoText()}};
}

Rows PgTablespace(const Snapshot&) {
  return {{CatalogNumber(1663), CatalogText("pg_default"), CatalogNumber(kOwner), NoText(), NoText()}};
}

/// Comments.
Rows PgDescription(const Snapshot& snapshot) {
  Rows rows;
  const auto add = [&](int64_t oid, int64_t of, int64_t part, const std::string& text) {
    if (!text.empty()) rows.push_back({CatalogNumber(oid), CatalogNumber(of), CatalogNumber(part), CatalogText(text)});
  };
  constexpr int64_t kClass = 1259, kType = 1247, kNamespace = 2615, kFunction = 1255;
  for (const auto& table : snapshot.tables) {
    add(OidOf(*table), kClass, 0, table->schema.comment);
    for (size_t c = 0; c < table->schema.columns.size(); ++c)
      add(OidOf(*table), kClass, static_cast<int64_t>(c) + 1, table->schema.columns[c].comment);
  }
  const CatalogNames& names = snapshot.names;
  const auto place = [](const auto& list, const auto& is_it) {
    return static_cast<size_t>(std::ranges::find_if(list, is_it) - list.begin());
  };
  for (const Comment& c : names.comments) {
    if (c.kind == "schema") add(OidOfSchema(c.name), kNamespace, 0, c.text);
    if (c.kind == "type") add(OidOfEnum(c.name), kType, 0, c.text);
    if (c.kind == "sequence")
      add(OidOfSequence(place(names.sequences, [&](const Sequence& s) { return s.name == c.name; })), kClass, 0,
          c.text);
    if (c.kind == "macro") {
      const size_t macro = place(snapshot.macros, [&](const Macro& m) { return m.name == c.name; });
      add(kFirstFunction + static_cast<int64_t>(macro), kFunction, 0, c.text);
    }
    if (c.kind != "view") continue;
    const size_t v = place(snapshot.views, [&](const auto& view) { return view->name == c.name && !view->temporary; });
    if (v == snapshot.views.size()) continue;
    const std::vector<ViewColumn>& columns = snapshot.views[v]->columns;
    const size_t column = place(columns, [&](const ViewColumn& of) { return of.name == c.column; });
    add(OidOfView(v), kClass, c.column.empty() ? 0 : static_cast<int64_t>(column) + 1, c.text);
  }
  return rows;
}

/// What a name alone does not find, see pg_table_is_visible.
Rows Hidden(const Snapshot& snapshot) {
  Rows rows;
  const auto add = [&](const std::string& name, int64_t oid) {
    if (snapshot.Resolve(BaseName(name)) != name) rows.push_back({CatalogNumber(oid)});
  };
  for (const auto& table : snapshot.tables) add(table->schema.name, OidOf(*table));
  for (size_t v = 0; v < snapshot.views.size(); ++v) add(snapshot.views[v]->name, OidOfView(v));
  for (size_t s = 0; s < snapshot.names.sequences.size(); ++s) add(snapshot.names.sequences[s].name, OidOfSequence(s));
  return rows;
}

std::vector<CatalogTable> CommentTables() {
  return {
      {kSchema,
       "pg_description",
       {{"objoid", kNumber}, {"classoid", kNumber}, {"objsubid", kNumber}, {"description", kText}},
       PgDescription},
      {kSchema, "tessera_hidden", {{"oid", kNumber}}, Hidden},
  };
}

std::vector<CatalogTable> PlaceTables() {
  return {
      {kSchema,
       "pg_collation",
       {{"oid", kNumber},
        {"collname", kText},
        {"collnamespace", kNumber},
        {"collprovider", kText},
        {"collisdeterministic", kFlag},
        {"collencoding", kNumber},
        {"collcollate", kText},
        {"collctype", kText}},
       PgCollation},
      {kSchema,
       "pg_language",
       {{"oid", kNumber}, {"lanname", kText}, {"lanowner", kNumber}, {"lanpltrusted", kFlag}, {"lanacl", kText}},
       PgLanguage},
      {kSchema,
       "pg_tablespace",
       {{"oid", kNumber}, {"spcname", kText}, {"spcowner", kNumber}, {"spcacl", kText}, {"spcoptions", kText}},
       PgTablespace},
  };
}

std::vector<CatalogTable> RoleTables() {
  return {
      {kSchema,
       "pg_roles",
       {{"oid", kNumber},
        {"rolname", kText},
        {"rolsuper", kFlag},
        {"rolinherit", kFlag},
        {"rolcreaterole", kFlag},
        {"rolcreatedb", kFlag},
        {"rolcanlogin", kFlag},
        {"rolreplication", kFlag},
        {"rolconnlimit", kNumber},
        {"rolvaliduntil", kText},
        {"rolbypassrls", kFlag},
        {"rolconfig", kText}},
       PgRoles},
      {kSchema,
       "pg_user",
       {{"usename", kText},
        {"usesysid", kNumber},
        {"usecreatedb", kFlag},
        {"usesuper", kFlag},
        {"userepl", kFlag},
        {"usebypassrls", kFlag},
        {"passwd", kText},
        {"valuntil", kText},
        {"useconfig", kText}},
       PgUser},
  };
}

std::vector<CatalogTable> FilledTables() {
  return {
      {kSchema, "tessera_definitions", {{"oid", kNumber}, {"kind", kText}, {"definition", kText}}, Definitions},
      {kSchema,
       "pg_attrdef",
       {{"oid", kNumber}, {"adrelid", kNumber}, {"adnum", kNumber}, {"adbin", kText}},
       PgAttrdef},
      {kSchema,
       "pg_proc",
       {{"oid", kNumber},
        {"proname", kText},
        {"pronamespace", kNumber},
        {"proowner", kNumber},
        {"prolang", kNumber},
        {"prokind", kText},
        {"proretset", kFlag},
        {"pronargs", kNumber},
        {"prosrc", kText},
        {"provolatile", kText},
        {"proacl", kText},
        {"proparallel", kText},
        {"prosecdef", kFlag},
        {"prorettype", kNumber},
        {"proargtypes", kText},
        {"proargnames", kText},
        {"proargmodes", kText},
        {"proallargtypes", kText}},
       PgProc},
      {kSchema,
       "pg_enum",
       {{"oid", kNumber}, {"enumtypid", kNumber}, {"enumsortorder", TypeId::kDouble}, {"enumlabel", kText}},
       PgEnum},
      {kSchema,
       "pg_indexes",
       {{"schemaname", kText}, {"tablename", kText}, {"indexname", kText}, {"tablespace", kText}, {"indexdef", kText}},
       PgIndexes},
      {kSchema, "pg_am", {{"oid", kNumber}, {"amname", kText}, {"amtype", kText}}, PgAm},
      {kSchema,
       "pg_database",
       {{"oid", kNumber},
        {"datname", kText},
        {"datdba", kNumber},
        {"encoding", kNumber},
        {"datlocprovider", kText},
        {"datcollate", kText},
        {"datctype", kText},
        {"daticulocale", kText},
        {"datistemplate", kFlag},
        {"datallowconn", kFlag},
        {"datconnlimit", kNumber},
        {"dattablespace", kNumber},
        {"datacl", kText}},
       PgDatabase},
      {kSchema,
       "pg_settings",
       {{"name", kText}, {"setting", kText}, {"unit", kText}, {"context", kText}, {"short_desc", kText}},
       PgSettings},
  };
}

/// What there is not here, so that clients find none: of tables.
std::vector<CatalogTable> EmptyTables() {
  return {
      {kSchema, "pg_shdescription", {{"objoid", kNumber}, {"classoid", kNumber}, {"description", kText}}, NoRows},
      {kSchema,
       "pg_inherits",
       {{"inhrelid", kNumber}, {"inhparent", kNumber}, {"inhseqno", kNumber}, {"inhdetachpending", kFlag}},
       NoRows},
      {kSchema,
       "pg_matviews",
       {{"schemaname", kText}, {"matviewname", kText}, {"matviewowner", kText}, {"definition", kText}},
       NoRows},
      {kSchema,
       "pg_trigger",
       {{"oid", kNumber},
        {"tgrelid", kNumber},
        {"tgparentid", kNumber},
        {"tgname", kText},
        {"tgenabled", kText},
        {"tgisinternal", kFlag},
        {"tgconstraint", kNumber},
        {"tgtype", kNumber}},
       NoRows},
      {kSchema,
       "pg_rewrite",
       {{"oid", kNumber}, {"rulename", kText}, {"ev_class", kNumber}, {"ev_enabled", kText}},
       NoRows},
      {kSchema,
       "pg_policy",
       {{"oid", kNumber},
        {"polname", kText},
        {"polrelid", kNumber},
        {"polcmd", kText},
        {"polpermissive", kFlag},
        {"polroles", kText},
        {"polqual", kText},
        {"polwithcheck", kText}},
       NoRows},
      {kSchema,
       "pg_statistic_ext",
       {{"oid", kNumber},
        {"stxrelid", kNumber},
        {"stxname", kText},
        {"stxnamespace", kNumber},
        {"stxkind", kText},
        {"stxkeys", kText},
        {"stxstattarget", kNumber}},
       NoRows},
  };
}

/// And of servers and users.
std::vector<CatalogTable> EmptyServerTables() {
  return {
      {kSchema, "pg_publication", {{"oid", kNumber}, {"pubname", kText}, {"puballtables", kFlag}}, NoRows},
      {kSchema,
       "pg_publication_rel",
       {{"oid", kNumber}, {"prpubid", kNumber}, {"prrelid", kNumber}, {"prqual", kText}, {"prattrs", kText}},
       NoRows},
      {kSchema, "pg_publication_namespace", {{"oid", kNumber}, {"pnpubid", kNumber}, {"pnnspid", kNumber}}, NoRows},
      {kSchema,
       "pg_depend",
       {{"classid", kNumber},
        {"objid", kNumber},
        {"objsubid", kNumber},
        {"refclassid", kNumber},
        {"refobjid", kNumber},
        {"refobjsubid", kNumber},
        {"deptype", kText}},
       NoRows},
      {kSchema,
       "pg_range",
       {{"rngtypid", kNumber}, {"rngsubtype", kNumber}, {"rngmultitypid", kNumber}, {"rngcollation", kNumber}},
       NoRows},
      {kSchema,
       "pg_opclass",
       {{"oid", kNumber},
        {"opcname", kText},
        {"opcmethod", kNumber},
        {"opcnamespace", kNumber},
        {"opcintype", kNumber},
        {"opcdefault", kFlag}},
       NoRows},
      {kSchema,
       "pg_extension",
       {{"oid", kNumber}, {"extname", kText}, {"extowner", kNumber}, {"extnamespace", kNumber}, {"extversion", kText}},
       NoRows},
      {kSchema, "pg_foreign_table", {{"ftrelid", kNumber}, {"ftserver", kNumber}, {"ftoptions", kText}}, NoRows},
      {kSchema, "pg_foreign_server", {{"oid", kNumber}, {"srvname", kText}}, NoRows},
      {kSchema, "pg_auth_members", {{"roleid", kNumber}, {"member", kNumber}, {"grantor", kNumber}}, NoRows},
  };
}

}  // namespace

const char* ServerSetting(std::string_view name) {
  for (const auto& [setting, value] : kSettings) {
    if (LowerCase(setting) == LowerCase(name)) return value;
  }
  return nullptr;
}

const std::vector<CatalogTable>& PgServerCatalog() {
  static const std::vector<CatalogTable> tables = [] {
    std::vector<CatalogTable> all = FilledTables();
    for (std::vector<CatalogTable> empty :
         {RoleTables(), CommentTables(), PlaceTables(), EmptyTables(), EmptyServerTables()}) {
      for (CatalogTable& table : empty) all.push_back(std::move(table));
    }
    return all;
  }();
  return tables;
}

}  // namespace tessera
