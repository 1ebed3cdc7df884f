// CREATE VIEW and DROP VIEW: of the database, or of the session.

#include <algorithm>

#include "session/statements.h"

namespace tessera {

Status CreateView(SessionState* state, const Statement& statement) {
  const ViewSchema& view = *statement.view;
  if (!view.temporary) return state->database->CreateView(view, statement.or_replace, statement.if_exists);
  Views& views = state->temporary_views;
  const auto at = std::ranges::find_if(views, [&](const auto& v) { return v->name == view.name; });
  if (at == views.end()) {
    views.push_back(statement.view);
  } else if (statement.or_replace) {
    *at = statement.view;
  }
  return Status::Ok();
}

Status DropViews(SessionState* state, const Statement& statement) {
  std::vector<std::string> names = statement.tables;
  Views left = state->temporary_views;
  std::erase_if(names, [&](const std::string& name) {
    return std::erase_if(left, [&](const auto& view) { return view->name == name; }) > 0;
  });
  if (!names.empty()) TESSERA_TRY(state->database->DropViews(names, statement.if_exists));
  state->temporary_views.swap(left);
  return Status::Ok();
}

}  // namespace tessera
