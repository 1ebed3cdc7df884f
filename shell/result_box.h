// Results as a box, or as box without its frame, or in ASCII.
//
// Start at: MakeBoxText. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "session/session.h"
#include "shell/result_options.h"

namespace tessera {

/// A writer of box, table or column.
std::unique_ptr<ResultWriter> MakeBoxText(const ResultTextOptions& options, TextSink sink,
                                          std::function<void(const std::string&)> done);

}  // namespace tessera
