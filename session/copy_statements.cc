// COPY between tables and files or the standard streams.

#include <fmt/format.h>
#include <sys/stat.h>

#include "session/program_run.h"
#include "session/standard_streams.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/columnar/columnar_writer.h"
#include "tablet/csv/csv_header.h"
#include "tablet/csv/csv_writer.h"
#include "tablet/load/columnar_options.h"
#include "tablet/load/row_writer.h"
#include "tablet/load/shared_load.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// The other ranks, with this session's settings.
class SessionRanks final : public LoadRanks {
 public:
  explicit SessionRanks(const SessionState& state) : state_(state) {}

  Result<bool> Load(const SharedLoad& load, SharedFile* file, TableLoad* own) override {
    if (load.file_bytes <= static_cast<uint64_t>(state_.settings.share_copy_above)) return false;
    ClusterLoad shared;
    shared.load = &load;
    shared.threads = static_cast<int>(state_.settings.threads);
    shared.settings = ClusterSettingsOf(state_.settings);
    return state_.cluster->Load(shared, file, own);
  }

 private:
  const SessionState& state_;
};

/// A pipe, a terminal or the like: what is read of it is gone.
bool IsReadOnce(const std::string& file) {
  struct stat info;
  return stat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/// Where the rows come from, under a name that can be opened.
struct CopySource {
  std::string file;
  TemporaryFile spool;
  std::string name;  ///< for messages, instead of that of the spool file; "": the file's own
};

Result<CopySource> OpenSource(const SessionState& state, const Statement& statement) {
  CopySource source;
  source.file = statement.file;
  if (statement.file.empty()) {
    if (!state.options.standard_input_is_free) {
      return SqlError("COPY FROM STDIN cannot read standard input: the statements come from there", -1,
                      "Give the statement with -c or in a file with -f.");
    }
    TESSERA_ASSIGN(source.spool, SpoolStandardInput());
    source.name = "standard input";
  } else if (statement.copy_from.header && IsReadOnce(statement.file)) {
    // The header says in which order the columns are before anything is loaded.
    TESSERA_ASSIGN(source.spool, SpoolPipe(statement.file));
    source.name = QuoteForMessage(statement.file);
  }
  if (!source.name.empty()) source.file = source.spool.path();
  return source;
}

Result<std::unique_ptr<RowWriter>> OpenWriter(const std::string& file, const Statement& statement,
                                              const std::vector<vm::ResultColumn>& columns) {
  if (!statement.setting.empty()) {
    std::vector<ColumnarColumn> written;
    for (const vm::ResultColumn& c : columns) written.push_back({c.name, c.type});
    return OpenColumnarWriter(file, ColumnarOptions::Of(statement.setting), std::move(written));
  }
  std::vector<std::string> names;
  for (const vm::ResultColumn& c : columns) names.push_back(c.name);
  TESSERA_ASSIGN(std::unique_ptr<CsvWriter> writer, CsvWriter::Create(file, statement.copy_to, names));
  return std::unique_ptr<RowWriter>(std::move(writer));
}

}  // namespace

Status CopyFrom(SessionState* state, const Statement& statement, ResultWriter* out) {
  CopyFromOptions options = statement.copy_from;
  options.threads = state->threads();
  options.zone = state->settings.timezone;
  options.cancel = &state->cancel;
  options.schema = &statement.target->schema;
  TESSERA_ASSIGN(const CopySource source, OpenSource(*state, statement));
  const auto named = [&](const Status& error) {
    return source.name.empty() ? error : NameSource(error, source.file, source.name);
  };
  if (options.header) {
    std::string warning;
    const Status status =
        FollowHeader(source.file, statement.target->schema, statement.value == "match", &options, &warning);
    if (!status.ok()) return named(status);
    state->warning = source.name.empty() ? warning : NameSource(warning, source.file, source.name);
  }
  if (state->progress) {
    options.progress = [state, what = ShownName(statement.table)](uint64_t done, uint64_t all) {
      state->progress({what.c_str(), done, all, ProgressUnit::kBytes});
    };
  }
  SessionRanks ranks(*state);
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, statement.table));
  const bool shared = state->cluster != nullptr && !IsTemporaryName(statement.table);
  if (shared && source.name.empty()) options.ranks = &ranks;
  std::string tag;
  tag.reserve(kTagBytes);
  std::atomic<uint64_t> ignored{0};
  options.ignored = &ignored;
  Result<uint64_t> rows = database->CopyFrom(statement.table, source.file, options);
  if (!rows.ok()) return named(rows.status());
  state->timing.rows = *rows;
  WarnOfIgnored(state, ignored);
  fmt::format_to(std::back_inserter(tag), "COPY {}", *rows);
  return out->Done(tag);
}

Status CopyTo(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
  const Statement& statement = compiled.statement;
  std::string file = statement.file;
  TemporaryFile spool;
  // To the standard output through a file: one writer makes all CSV, and an error leaves no half of it on the output.
  if (file.empty()) {
    TESSERA_ASSIGN(spool, TemporaryFile::Create());
    file = spool.path();
  }
  TESSERA_ASSIGN(const std::unique_ptr<RowWriter> writer, OpenWriter(file, statement, compiled.program->columns));
  uint64_t rows = 0;
  TESSERA_TRY(RunProgram(state, *compiled.program, snapshot, [&](RowBatch&& batch) {
    rows += batch.rows;
    return writer->Append(batch);
  }));
  TESSERA_TRY(writer->Close());
  state->timing.rows = rows;
  if (statement.file.empty()) return spool.ForEachPiece([&](const std::string& text) { return out->Text(text); });
  return out->Done(fmt::format("COPY {}", rows));
}

}  // namespace tessera
