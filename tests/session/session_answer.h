// What a session answers, as text. For tests of whole statements.
//
// Start at: Answer. One thread.
#pragma once

#include <string>
#include <string_view>

#include "compiler/compiler.h"
#include "session/session.h"
#include "shell/result_text.h"

namespace tessera {

/// All that a statement prints, or its error.
inline std::string Answer(Session* session, const std::string& sql, const ResultTextOptions& options = {}) {
  std::string out;
  auto writer = MakeResultText(
      options,
      [&](std::string_view text) {
        out += text;
        return Status::Ok();
      },
      [&](const std::string& tag) { out += tag; });
  const Status status = session->Execute(sql, writer.get());
  return status.ok() ? out : FormatError(status, sql);
}

}  // namespace tessera
