// SET, RESET and SHOW.

#include <algorithm>

#include "base/memory_budget.h"
#include "session/settings.h"
#include "session/statements.h"

namespace tessera {

Status Set(SessionState* state, const Statement& statement) {
  if (statement.setting == "search_path") {
    state->search_path = statement.tables;
    return Status::Ok();
  }
  return Set(state, statement.setting, statement.value);
}

Status Set(SessionState* state, const std::string& name, const std::string& value) {
  TESSERA_ASSIGN(const Setting* const setting, FindSetting(name));
  Settings changed = state->CurrentSettings();
  if (value.empty() || value == "default" || value == "DEFAULT") {
    setting->reset(&changed);
  } else {
    TESSERA_TRY(setting->set(&changed, value));
  }
  return state->ChangeSettings(changed);
}

std::vector<vm::ResultColumn> ColumnsOfShow(const std::string& name) {
  const SqlType text = SqlType::Text();
  if (name == "all") return {{"name", text}, {"setting", text}, {"description", text}};
  return {{name, text}};
}

Status Show(SessionState* state, const std::string& name, ResultWriter* out) {
  Settings shown = state->CurrentSettings();
  // What holds, not that it was not said.
  shown.threads = state->threads();
  if (shown.session_memory == 0) shown.session_memory = static_cast<int64_t>(state->options.session_memory);
  shown.memory_limit = static_cast<int64_t>(std::min<uint64_t>(INT64_MAX, MemoryLimit()));
  const SqlType text = SqlType::Text();
  const std::vector<vm::ResultColumn> columns = ColumnsOfShow(name);
  RowBatch batch;
  batch.columns.resize(columns.size());
  for (ColumnVector& c : batch.columns) c.type = text;
  if (name == "all") {
    for (const Setting& s : AllSettings()) {
      batch.columns[0].Append(Value::Text(s.name));
      batch.columns[1].Append(Value::Text(s.text(shown)));
      batch.columns[2].Append(Value::Text(s.is_choice ? std::string(s.meaning) + ": " + s.values() : s.meaning));
      ++batch.rows;
    }
  } else {
    const SessionTransaction& t = state->transaction;
    const bool of_transaction = name == "transaction_isolation";
    if (of_transaction && t.is_open) shown.default_transaction_isolation = t.isolation;
    TESSERA_ASSIGN(const Setting* const setting, FindSetting(of_transaction ? "default_" + name : name));
    batch.columns[0].Append(Value::Text(setting->text(shown)));
    ++batch.rows;
  }
  state->running.timing.rows = batch.rows;
  TESSERA_TRY(out->Begin(columns));
  TESSERA_TRY(out->Rows(std::move(batch)));
  return out->End();
}

}  // namespace tessera
