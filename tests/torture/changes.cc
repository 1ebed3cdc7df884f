#include "tests/torture/changes.h"

#include "compiler/parse/script.h"
#include "tests/torture/answers.h"

namespace tessera {

Status RunStatements(Session* session, const std::string& script) {
  for (const StatementText& statement : SplitStatements(script)) {
    TESSERA_TRY(Ask(session, std::string(statement.sql)).status());
  }
  return {};
}

std::string StateOf(const std::string& directory) {
  SessionOptions options;
  options.directory = directory;
  options.device = DeviceChoice::kHost;
  options.threads = 1;
  const Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (!session.ok()) return "error: " + session.status().message();
  std::string state;
  const auto add = [&](const std::string& sql) {
    const Result<std::string> answer = Ask(session->get(), sql);
    state += answer.ok() ? *answer : answer.status().message() + "\n";
  };
  add("SHOW TABLES");
  for (const char* table : {"t", "u", "w", "made", "v", "s", "m", "p", "c", "a.t", "pg_description", "pg_constraint"})
    add(std::string("SELECT * FROM ") + table + " ORDER BY ALL");
  for (const char* value : {"made(1)", "nextval('made')"}) add(std::string("SELECT ") + value);
  return state;
}

}  // namespace tessera
