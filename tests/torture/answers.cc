#include "tests/torture/answers.h"

#include <fmt/format.h>

#include <cstdlib>

#include "shell/result_text.h"

namespace tessera {

std::unique_ptr<Session> OpenSession(const std::string& directory, int threads) {
  SessionOptions options;
  options.directory = directory;
  options.device = DeviceChoice::kHost;
  options.threads = threads;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (session.ok()) return std::move(*session);
  fmt::print(stderr, "cannot open the database: {}\n", session.status().message());
  std::exit(2);
}

Result<std::string> Ask(Session* session, const std::string& sql) {
  std::string out;
  ResultTextOptions options;
  options.format = ResultFormat::kCsv;
  const auto writer = MakeResultText(
      options,
      [&](std::string_view text) {
        out += text;
        return Status::Ok();
      },
      [&](const std::string& tag) { out += tag; });
  TESSERA_TRY(session->Execute(sql, writer.get()));
  return out;
}

}  // namespace tessera
