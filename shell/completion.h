// What Tab offers at the prompt: keywords, tables, columns, functions, settings, dot commands and files.
//
// Start at: Complete. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shell/line_editor.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// What a text is completed with.
struct CompletionNames {
  std::shared_ptr<const Snapshot> snapshot;  ///< nullptr: there is none to be had
  std::vector<std::string> dot_commands;     ///< without their dots
};

/// `before`: the lines of the statement before this one, "" or with a line feed at its end. `line`: what is typed of this
/// one. Places are those of `line`.
Completion Complete(const CompletionNames& names, std::string_view before, std::string_view line);

}  // namespace tessera
