// Views in the catalog.
#include <algorithm>
#include <utility>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/schema_check.h"

namespace tessera {
namespace {

constexpr int kVersionWithViews = 8;

}  // namespace

const char Catalog::kViewsSchema[] = R"(
CREATE TABLE views (
  name   TEXT PRIMARY KEY,
  query  TEXT NOT NULL
);
CREATE TABLE view_columns (
  view      TEXT NOT NULL REFERENCES views (name),
  position  INTEGER NOT NULL,
  name      TEXT NOT NULL,
  output    TEXT NOT NULL,
  type      TEXT NOT NULL,
  PRIMARY KEY (view, position)
);
)";

Status Catalog::LoadViews(Views* views) {
  TESSERA_ASSIGN(const bool has_views, HasTable("views"));
  if (!has_views) return {};
  CatalogStatement query(&file_, "SELECT name, query FROM views NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(const bool row, query.Step());
    if (!row) break;
    ViewSchema view;
    view.name = query.Text(0);
    view.query = query.Text(1);
    CatalogStatement columns(&file_,
                             "SELECT name, output, type, position FROM view_columns WHERE view = ? ORDER BY position");
    columns.Bind(std::string_view(view.name));
    for (;;) {
      TESSERA_ASSIGN(const bool column, columns.Step());
      if (!column) break;
      const auto number = static_cast<int64_t>(view.columns.size());
      (void)columns.Integer(3, number, number);
      view.columns.push_back({columns.Text(0), columns.Text(1), columns.Text(2)});
    }
    if (!query.wrong().empty() || !columns.wrong().empty())
      return file_.Corrupt("a view has " + (query.wrong().empty() ? columns.wrong() : query.wrong()));
    if (Status status = CheckView(view); !status.ok()) return file_.Corrupt(status.message());
    views->push_back(std::make_shared<const ViewSchema>(std::move(view)));
  }
  std::sort(views->begin(), views->end(), ViewLess);
  int64_t columns = 0;
  for (const auto& view : *views) columns += static_cast<int64_t>(view->columns.size());
  TESSERA_ASSIGN(const int64_t all_columns, QueryInteger(&file_, "SELECT count(*) FROM view_columns NOT INDEXED"));
  if (all_columns != columns) return file_.Corrupt("it has columns of a view that is missing");
  return {};
}

Status Catalog::WriteViews(const Views& views) {
  TESSERA_ASSIGN(const bool has_views, HasTable("views"));
  if (!has_views) {
    TESSERA_TRY(file_.Execute(kViewsSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithViews));
  }
  TESSERA_TRY(file_.Execute("DELETE FROM view_columns"));
  TESSERA_TRY(file_.Execute("DELETE FROM views"));
  CatalogStatement insert(&file_, "INSERT INTO views VALUES (?, ?)");
  CatalogStatement insert_column(&file_, "INSERT INTO view_columns VALUES (?, ?, ?, ?, ?)");
  for (const auto& view : views) {
    TESSERA_TRY(insert.Bind(std::string_view(view->name)).Bind(std::string_view(view->query)).Run());
    for (size_t c = 0; c < view->columns.size(); ++c) {
      insert_column.Bind(std::string_view(view->name)).Bind(static_cast<int64_t>(c));
      for (const std::string* text : {&view->columns[c].name, &view->columns[c].output, &view->columns[c].type})
        insert_column.Bind(std::string_view(*text));
      TESSERA_TRY(insert_column.Run());
    }
  }
  return {};
}

}  // namespace tessera
